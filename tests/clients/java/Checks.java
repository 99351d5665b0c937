// SPDX-License-Identifier: BSD-3-Clause
import java.util.Objects;
import java.util.concurrent.Callable;

/** Counts what a client program finds, as python/checks.py does. */
final class Checks {
	private final String name;
	private int passed, failed;

	Checks(String name) {
		this.name = name;
	}

	interface Part {
		void run() throws Exception;
	}

	void right(String what, boolean condition, Object more) {
		if (condition) {
			passed++;
			return;
		}
		failed++;
		String text = String.valueOf(more);
		System.out.println("FAIL " + what + " " + text.substring(0, Math.min(300, text.length())));
	}

	void same(String what, Object got, Object wanted) {
		right(what, Objects.deepEquals(got, wanted), "gave " + got + ", not " + wanted);
	}

	void raises(String what, Callable<?> call) {
		try {
			right(what, false, "gave " + call.call());
		} catch (Exception expected) {
			passed++;
		}
	}

	/** Asks again until the answer is the wanted one: for expiry. */
	void becomes(String what, Callable<?> call, Object wanted) throws Exception {
		long end = System.nanoTime() + 20_000_000_000L;
		Object got;
		while (!Objects.equals(got = call.call(), wanted) && System.nanoTime() < end)
			Thread.sleep(50);
		same(what, got, wanted);
	}

	/** What goes wrong in one part doesn't end the program. */
	void part(String what, Part part) {
		try {
			part.run();
		} catch (Exception error) {
			right(what, false, "ended by " + error);
			error.printStackTrace(System.out);
		}
	}

	void done() {
		System.out.println(name + ": passed " + passed + " failed " + failed);
		System.exit(failed == 0 && passed > 0 ? 0 : 1);
	}
}
