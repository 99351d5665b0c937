<?php
// SPDX-License-Identifier: BSD-3-Clause
// Counts what a client script finds, as python/checks.py does.
class Checks
{
	private int $passed = 0;
	private int $failed = 0;

	public function __construct(private string $name)
	{
		set_exception_handler(function (Throwable $error) {
			$this->true("the script", false, "ended by $error");
			$this->done();
		});
	}

	public function true(string $what, $condition, $more = ''): void
	{
		if ($condition) {
			$this->passed++;
			return;
		}
		$this->failed++;
		echo "FAIL $what " . (is_string($more) ? $more : json_encode($more, JSON_PARTIAL_OUTPUT_ON_ERROR)) . "\n";
	}

	public function same(string $what, $got, $wanted): void
	{
		$equal = is_object($wanted) ? $got == $wanted : $got === $wanted;
		$this->true($what, $equal, substr('gave ' . var_export($got, true), 0, 200) .
			substr(', not ' . var_export($wanted, true), 0, 200));
	}

	/** Asks again until the answer is the wanted one: for expiry. */
	public function becomes(string $what, callable $ask, $wanted): void
	{
		$end = microtime(true) + 20;
		while (($got = $ask()) !== $wanted && microtime(true) < $end)
			usleep(50000);
		$this->same($what, $got, $wanted);
	}

	public function done(): never
	{
		echo "$this->name: passed $this->passed failed $this->failed\n";
		exit($this->failed || !$this->passed ? 1 : 0);
	}
}
