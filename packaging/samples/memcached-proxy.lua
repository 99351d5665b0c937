-- SPDX-License-Identifier: BSD-3-Clause
-- memcached's built-in proxy in front of three Flashield nodes:
--   memcached -l 127.0.0.1 -p 11211 -o proxy_config=packaging/samples/memcached-proxy.lua
-- Run with memcached 1.6.18 built with --enable-proxy (Debian's package is built without): set, get, delete and meta commands
-- through it, a node killed and started again. Versions from 1.6.23 on have other calls for routes: see their manual.
--
-- Keys stay with their node here: while it is away they are errors and their writes are lost, they don't move to
-- other nodes. What was deleted or written meanwhile must not be served afterwards, so the nodes run with
-- packaging/samples/flashield-node.conf and come back cold. packaging/doc/nodes.md tells the rest.

function mcp_config_pools(_)
    mcp.backend_connect_timeout(1)
    mcp.backend_read_timeout(1.5) -- well above the nodes' flash-read-timeout
    mcp.backend_failure_limit(3)
    mcp.backend_retry_timeout(3)
    return mcp.pool({
        mcp.backend("node1", "127.0.0.1", 11311),
        mcp.backend("node2", "127.0.0.1", 11312),
        mcp.backend("node3", "127.0.0.1", 11313),
    }, { dist = mcp.dist_jump_hash })
end

function mcp_config_routes(pool)
    mcp.attach(mcp.CMD_ANY_STORAGE, function(request)
        return pool(request)
    end)
end
