// SPDX-License-Identifier: BSD-3-Clause
import java.net.SocketAddress;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Future;
import net.spy.memcached.AddrUtil;
import net.spy.memcached.CASResponse;
import net.spy.memcached.CASValue;
import net.spy.memcached.ConnectionFactoryBuilder;
import net.spy.memcached.ConnectionFactoryBuilder.Protocol;
import net.spy.memcached.MemcachedClient;
import net.spy.memcached.auth.AuthDescriptor;
import net.spy.memcached.auth.PlainCallbackHandler;
import net.spy.memcached.transcoders.SerializingTranscoder;

/** spymemcached: UseSpymemcached HOST:PORT [--binary] [--user=U --password=P] */
public final class UseSpymemcached {
	private static MemcachedClient connect(List<String> words, boolean binary) throws Exception {
		ConnectionFactoryBuilder builder = new ConnectionFactoryBuilder().setOpTimeout(60_000)
			.setProtocol(binary ? Protocol.BINARY : Protocol.TEXT).setMaxReconnectDelay(1);
		String user = null, password = null;
		for (String word : words) {
			if (word.startsWith("--user="))
				user = word.substring(7);
			if (word.startsWith("--password="))
				password = word.substring(11);
		}
		if (user != null)
			builder.setAuthDescriptor(new AuthDescriptor(new String[] {"PLAIN"}, new PlainCallbackHandler(user, password)));
		return new MemcachedClient(builder.build(), AddrUtil.getAddresses(words.get(0)));
	}

	private static Object retried(Callable<?> call) {
		try {
			return call.call();
		} catch (Exception reconnecting) {
			return null;
		}
	}

	public static void main(String[] words) throws Exception {
		List<String> list = Arrays.asList(words);
		boolean binary = list.contains("--binary");
		Checks checks = new Checks("spymemcached " + (binary ? "binary" : "text"));
		MemcachedClient client = connect(list, binary);

		checks.part("refusals", () -> {
			client.flush().get();
			checks.same("get of nothing", client.get("nothing"), null);
			checks.same("gets of nothing", client.gets("nothing"), null);
			checks.same("delete of nothing", client.delete("nothing").get(), false);
			checks.same("replace of nothing", client.replace("nothing", 0, "x").get(), false);
			checks.same("append to nothing", client.append("nothing", "x").get(), false);
			checks.same("incr of nothing", client.incr("nothing", 1), -1L);
			checks.same("touch of nothing", client.touch("nothing", 10).get(), false);
			checks.same("cas of nothing", client.cas("nothing", 1, "x"), CASResponse.NOT_FOUND);
			checks.raises("long key", () -> client.get("k".repeat(251)));
			client.set("word", 0, "abc").get();
			if (binary)
				checks.same("incr of a word", client.incr("word", 1), -1L);
			else
				retried(() -> client.incr("word", 1)); // it connects anew after an error
			checks.becomes("alive after it", () -> retried(() -> client.get("word")), "abc");
		});
		checks.part("values", () -> {
			Map<String, Object> values = new HashMap<>();
			values.put("string", "text");
			values.put("empty", "");
			values.put("unicode", "\u00fcml\u00e4ut \u20ac");
			values.put("crlf", "a\r\nEND\r\n");
			values.put("int", 12345);
			values.put("long", 1L << 40);
			values.put("double", 1.5);
			values.put("boolean", true);
			values.put("date", new Date(1234567890000L));
			values.put("list", new ArrayList<>(Arrays.asList(1, "two", null)));
			values.put("large", "0123456789".repeat(90000));
			for (Map.Entry<String, Object> entry : values.entrySet())
				checks.same("set " + entry.getKey(), client.set(entry.getKey(), 1000, entry.getValue()).get(), true);
			for (Map.Entry<String, Object> entry : values.entrySet())
				checks.same("get " + entry.getKey(), client.get(entry.getKey()), entry.getValue());
			checks.same("getBulk", client.getBulk(values.keySet()), values);
			checks.same("asyncGet", client.asyncGet("string").get(), "text");
			byte[] noise = new byte[700000];
			new java.util.Random(7).nextBytes(noise);
			checks.same("set bytes", client.set("bytes", 1000, noise).get(), true);
			checks.same("get bytes", client.get("bytes"), noise);
		});
		checks.part("storage", () -> {
			checks.same("add", client.add("s", 0, "1").get(), true);
			checks.same("add again", client.add("s", 0, "2").get(), false);
			checks.same("replace", client.replace("s", 0, "3").get(), true);
			checks.same("append", client.append("s", "4").get(), true);
			checks.same("prepend", client.prepend("s", "0").get(), true);
			CASValue<Object> read = client.gets("s");
			checks.same("after append", read.getValue(), "034");
			checks.same("cas", client.cas("s", read.getCas(), "new"), CASResponse.OK);
			checks.same("stale cas", client.cas("s", read.getCas(), "newer"), CASResponse.EXISTS);
			checks.same("after cas", client.get("s"), "new");
			checks.same("delete", client.delete("s").get(), true);
			checks.same("after delete", client.get("s"), null);
		});
		checks.part("counters", () -> {
			client.set("n", 0, "10").get();
			checks.same("incr", client.incr("n", 90), 100L);
			checks.same("decr", client.decr("n", 1), 99L);
			checks.same("not below zero", client.decr("n", 1000), 0L);
			checks.same("incr with a default", client.incr("made", 5, 7L), 7L);
			checks.same("incr after it", client.incr("made", 5, 7L), 12L);
			checks.same("decr with a default", client.decr("lessened", 5, 7L), 7L);
		});
		checks.part("many", () -> {
			List<Future<Boolean>> all = new ArrayList<>();
			Map<String, Object> many = new HashMap<>();
			for (int i = 0; i < 500; i++) {
				many.put("many-" + i, ("value " + i + " ").repeat(i % 40 + 1));
				all.add(client.set("many-" + i, 1000, many.get("many-" + i)));
			}
			boolean every = true;
			for (Future<Boolean> one : all)
				every &= one.get();
			checks.same("500 sets under way", every, true);
			checks.same("getBulk of 500", client.getBulk(many.keySet()), many);
			all.clear();
			for (String key : many.keySet())
				all.add(client.delete(key));
			every = true;
			for (Future<Boolean> one : all)
				every &= one.get();
			checks.same("500 deletes", every, true);
			checks.same("nothing left of them", client.getBulk(many.keySet()).size(), 0);
		});
		checks.part("expiry", () -> {
			client.set("soon", 1, "x").get();
			client.set("touched", 1000, "x").get();
			client.set("later", 1000, "x").get();
			checks.same("touch", client.touch("touched", 1).get(), true);
			if (binary) {
				client.set("taken", 1000, "x").get();
				checks.same("getAndTouch", client.getAndTouch("taken", 1).getValue(), "x");
				checks.becomes("getAndTouch expires", () -> client.get("taken"), null);
			}
			checks.becomes("expires", () -> client.get("soon"), null);
			checks.becomes("touched expires", () -> client.get("touched"), null);
			checks.same("another lives", client.get("later"), "x");
		});
		checks.part("too large", () -> {
			SerializingTranscoder ofAnySize = new SerializingTranscoder(Integer.MAX_VALUE);
			ofAnySize.setCompressionThreshold(Integer.MAX_VALUE);
			byte[] noise = new byte[21 << 20];
			new java.util.Random(8).nextBytes(noise);
			for (int time = 1; time <= 10; time++) {
				checks.same("too large, time " + time, retried(() -> client.set("huge", 60, noise, ofAnySize).get()) == Boolean.TRUE, false);
				checks.same("set after it", client.set("small", 60, "after " + time).get(), true);
				checks.same("get after it", client.get("small"), "after " + time);
				checks.same("nothing stored", client.get("huge", ofAnySize), null);
			}
		});
		checks.part("administration", () -> {
			for (Map.Entry<SocketAddress, String> entry : client.getVersions().entrySet())
				checks.right("version", entry.getValue().matches("\\d+\\.\\d+\\.\\d+.*"), entry);
			for (Map<String, String> report : client.getStats().values())
				for (String name : new String[] {"pid", "uptime", "curr_items", "cmd_get", "bytes", "limit_maxbytes"})
					checks.right("stats " + name, report.containsKey(name), report);
			for (String kind : new String[] {"settings", "items", "slabs"})
				for (Map<String, String> report : client.getStats(kind).values())
					checks.right("stats " + kind, !report.isEmpty(), report);
			checks.same("flush", client.flush().get(), true);
			checks.same("nothing left", client.get("later"), null);
		});
		client.shutdown();
		checks.done();
	}
}
