-- generations.lua: ids from 5 billion on are on machines of their own, and older ones stay where they are. Each
-- generation is a list of shards as in memcached-proxy.lua; never change one, add a further one.
settings{
  pool_options = { filter = "tags", filter_conf = "{}" },
  backend_connect_timeout = 1,
  backend_read_timeout = 3,
}
pools{
  main1 = { backends = { "10.0.0.1:11211", "10.0.0.4:11211" } },
  ha1 = { backends = { "10.0.0.2:11211", "10.0.0.5:11211" } },
  main2 = { backends = { "10.0.1.1:11211", "10.0.1.4:11211" } },
  ha2 = { backends = { "10.0.1.2:11211", "10.0.1.5:11211" } },
}
local function generations(first, second)
  return route_generations{ from = { 0, 5000000000 }, children = { first, second } }
end
local function read()
  return generations(route_failover{ children = { "main1", "ha1" } }, route_failover{ children = { "main2", "ha2" } })
end
routes{
  cmap = { get = read(), gets = read(), mg = read() },
  default = generations(
    route_leader{ children = { "main1", "ha1" } }, route_leader{ children = { "main2", "ha2" } }),
}
