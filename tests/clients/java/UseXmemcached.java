// SPDX-License-Identifier: BSD-3-Clause
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import net.rubyeye.xmemcached.CASOperation;
import net.rubyeye.xmemcached.GetsResponse;
import net.rubyeye.xmemcached.MemcachedClient;
import net.rubyeye.xmemcached.MemcachedClientBuilder;
import net.rubyeye.xmemcached.XMemcachedClientBuilder;
import net.rubyeye.xmemcached.command.BinaryCommandFactory;
import net.rubyeye.xmemcached.utils.AddrUtil;

/** xmemcached: UseXmemcached HOST:PORT... [--binary] */
public final class UseXmemcached {
	public static void main(String[] words) throws Exception {
		List<String> servers = new ArrayList<>();
		boolean binary = false;
		for (String word : words) {
			if (word.equals("--binary"))
				binary = true;
			else
				servers.add(word);
		}
		boolean isBinary = binary;
		Checks checks = new Checks("xmemcached " + (binary ? "binary" : "text"));
		MemcachedClientBuilder builder = new XMemcachedClientBuilder(AddrUtil.getAddresses(String.join(" ", servers)));
		builder.setConnectionPoolSize(2);
		if (binary)
			builder.setCommandFactory(new BinaryCommandFactory());
		MemcachedClient client = builder.build();
		client.setOpTimeout(20_000);

		checks.part("refusals", () -> {
			client.flushAll();
			checks.same("get of nothing", client.get("nothing"), null);
			checks.same("delete of nothing", client.delete("nothing"), false);
			checks.same("replace of nothing", client.replace("nothing", 0, "x"), false);
			checks.same("append to nothing", client.append("nothing", "x"), false);
			checks.same("touch of nothing", client.touch("nothing", 10), false);
			checks.raises("long key", () -> client.get("k".repeat(251)));
			if (!isBinary)
				checks.raises("blank in a key", () -> client.get("a b"));
			client.set("word", 0, "abc");
			checks.raises("incr of a word", () -> client.incr("word", 1));
			checks.same("alive after it", client.get("word"), "abc");
		});
		checks.part("values", () -> {
			Map<String, Object> values = new HashMap<>();
			values.put("string", "text");
			values.put("unicode", "\u00fcml\u00e4ut \u20ac");
			values.put("crlf", "a\r\nEND\r\n");
			values.put("int", 12345);
			values.put("long", 1L << 40);
			values.put("double", 1.5);
			values.put("boolean", true);
			values.put("large", "0123456789".repeat(90000));
			for (Map.Entry<String, Object> entry : values.entrySet())
				checks.same("set " + entry.getKey(), client.set(entry.getKey(), 1000, entry.getValue()), true);
			for (Map.Entry<String, Object> entry : values.entrySet())
				checks.same("get " + entry.getKey(), client.get(entry.getKey()), entry.getValue());
			checks.same("get of many", client.get(values.keySet()), values);
		});
		checks.part("storage", () -> {
			checks.same("add", client.add("s", 0, "1"), true);
			checks.same("add again", client.add("s", 0, "2"), false);
			checks.same("replace", client.replace("s", 0, "3"), true);
			checks.same("append", client.append("s", "4"), true);
			checks.same("prepend", client.prepend("s", "0"), true);
			GetsResponse<String> read = client.gets("s");
			checks.same("gets", read.getValue(), "034");
			checks.same("cas", client.cas("s", 0, "new", read.getCas()), true);
			checks.same("stale cas", client.cas("s", 0, "newer", read.getCas()), false);
			checks.same("cas operation", client.cas("s", 0, new CASOperation<String>() {
				public int getMaxTries() {
					return 3;
				}

				public String getNewValue(long cas, String value) {
					return value + "er";
				}
			}), true);
			checks.same("after cas", client.get("s"), "newer");
			checks.same("delete", client.delete("s"), true);
			checks.same("after delete", client.get("s"), null);
		});
		checks.part("counters", () -> {
			checks.same("incr makes it", client.incr("n", 5, 10), 10L);
			checks.same("incr", client.incr("n", 90, 0), 100L);
			checks.same("decr", client.decr("n", 1), 99L);
			checks.same("not below zero", client.decr("n", 1000), 0L);
		});
		checks.part("threads", () -> {
			ExecutorService pool = Executors.newFixedThreadPool(4);
			List<Callable<Boolean>> work = new ArrayList<>();
			for (int t = 0; t < 4; t++) {
				int thread = t;
				work.add(() -> {
					boolean right = true;
					for (int i = 0; i < 100; i++) {
						String key = "t-" + thread + "-" + i;
						right &= client.set(key, 1000, key.repeat(i % 30 + 1));
						right &= key.repeat(i % 30 + 1).equals(client.get(key));
					}
					return right;
				});
			}
			for (Future<Boolean> one : pool.invokeAll(work))
				checks.same("a thread's sets and gets", one.get(), true);
			pool.shutdown();
		});
		checks.part("expiry and noreply", () -> {
			client.set("soon", 1, "x");
			client.set("touched", 1000, "x");
			client.set("later", 1000, "x");
			checks.same("touch", client.touch("touched", 1), true);
			checks.becomes("expires", () -> client.get("soon"), null);
			checks.becomes("touched expires", () -> client.get("touched"), null);
			checks.same("another lives", client.get("later"), "x");
			client.setWithNoReply("quiet", 1000, "q");
			checks.becomes("noreply set", () -> client.get("quiet"), "q");
			client.deleteWithNoReply("quiet");
			checks.becomes("noreply delete", () -> client.get("quiet"), null);
		});
		checks.part("administration", () -> {
			// In binary it gives null, whatever the server says.
			for (Map.Entry<InetSocketAddress, String> entry : client.getVersions().entrySet())
				checks.right("version", isBinary || entry.getValue().matches("\\d+\\.\\d+\\.\\d+.*"), entry);
			for (Map<String, String> report : client.getStats().values())
				for (String name : new String[] {"pid", "uptime", "curr_items", "cmd_get", "bytes", "limit_maxbytes"})
					checks.right("stats " + name, report.containsKey(name), report);
			client.flushAll();
			checks.same("nothing left", client.get("later"), null);
		});
		client.shutdown();
		checks.done();
	}
}
