-- memcached-proxy.lua: two shards as Main, HA and two sets of L1: writes go to whoever leads, reads to an L1,
-- then to Main, then to HA. Each list has the shards in one and the same order, which decides who has an id:
-- never change it. main and ha are the two nodes of a shard that may lead; which of them does matters not.
-- A key's shard follows from what stands in its braces: feed:{123}.like
settings{
  pool_options = { filter = "tags", filter_conf = "{}" },
  backend_connect_timeout = 1,
  backend_read_timeout = 3,
}
pools{
  main = { backends = { "10.0.0.1:11211", "10.0.0.4:11211" } },
  ha = { backends = { "10.0.0.2:11211", "10.0.0.5:11211" } },
  l1a = { backends = { "10.0.0.3:11211", "10.0.0.6:11211" } },
  l1b = { backends = { "10.0.0.7:11211", "10.0.0.8:11211" } },
}
local function read()
  return route_failover{ children = { route_random{ children = { "l1a", "l1b" } }, "main", "ha" } }
end
routes{
  cmap = { get = read(), gets = read(), mg = read() },
  default = route_leader{ children = { "main", "ha" } },
}
