-- proxy-routes.lua: two routes for memcached's proxy, beside those of its routelib:
--   memcached -o proxy_config=routelib:proxy-routes.lua,proxy_arg=memcached-proxy.lua

-- route_leader{ children = {...} }: to whichever child leads. The next one is asked only when a node
-- refuses and says that it is not the leader: after a time-out nobody knows whether a change was counted,
-- so it is not sent again. From memcached 1.6.40 on, which shows a route what was refused.
function route_leader_conf(t)
  return t
end

local function ask_leader(context, request, nodes)
  local result
  for i = 1, #nodes do
    result = context:enqueue_and_wait(request, nodes[i])
    local line = not result:ok() and result:raw_string()
    if not line or not string.find(line, "not the leader", 1, true) then
      break
    end
  end
  return result
end

function route_leader_start(a, ctx, fgen)
  local nodes = {}
  for i, child in ipairs(a.children) do
    nodes[i] = fgen:new_handle(child)
  end
  fgen:ready({ n = ctx:label(), f = function(context)
    return function(request)
      return ask_leader(context, request, nodes)
    end
  end })
end

-- route_generations{ children = {...}, from = {0, X, ...} }: ids from from[i] on belong to children[i], if to
-- none after it. Keys are feed:{123}.like, or without braces.
function route_generations_conf(t)
  return t
end

function route_generations_start(a, ctx, fgen)
  local to, from = {}, a.from
  for i, child in ipairs(a.children) do
    to[i] = fgen:new_handle(child)
  end
  fgen:ready({ n = ctx:label(), f = function(context)
    return function(request)
      local id = math.tointeger(tonumber(string.match(request:key(), "^[^:]*:{?(%d+)"))) or 0
      local n = #to
      while n > 1 and id < from[n] do
        n = n - 1
      end
      return context:enqueue_and_wait(request, to[n])
    end
  end })
end

register_route_handlers({ "leader", "generations" })
