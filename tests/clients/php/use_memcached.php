<?php
// SPDX-License-Identifier: BSD-3-Clause
// php-memcached: use_memcached.php HOST:PORT... [--binary] [--user=U --password=P]
require __DIR__ . '/checks.php';

$servers = [];
$options = [];
foreach (array_slice($argv, 1) as $word) {
	if (preg_match('/^--(\w+)(?:=(.*))?$/', $word, $match))
		$options[$match[1]] = $match[2] ?? true;
	else
		$servers[] = [strtok($word, ':'), (int)strtok(':')];
}
$binary = isset($options['binary']);
$checks = new Checks('php-memcached ' . ($binary ? 'binary' : 'text') . ', ' . count($servers) . ' servers');

function connect(array $more = [], ?string $password = null): Memcached
{
	global $servers, $options, $binary;
	$client = new Memcached();
	$client->setOptions([Memcached::OPT_BINARY_PROTOCOL => $binary, Memcached::OPT_TCP_NODELAY => true, Memcached::OPT_POLL_TIMEOUT => 120000,
		Memcached::OPT_LIBKETAMA_COMPATIBLE => count($servers) > 1] + $more);
	foreach ($more as $option => $value)
		$client->setOption($option, $value);
	$client->addServers($servers);
	if (isset($options['user']))
		$client->setSaslAuthData($options['user'], $password ?? $options['password']);
	return $client;
}

$client = connect();
$code = fn() => $client->getResultCode();

if (isset($options['user'])) {
	$refused = connect([], 'wrong');
	$checks->same('wrong password', $refused->set('x', 'y'), false);
	$checks->true('wrong password, code', $refused->getResultCode() !== Memcached::RES_SUCCESS, $refused->getResultMessage());
}

// Refusals.
$checks->same('get of nothing', $client->get('nothing'), false);
$checks->same('get of nothing, code', $code(), Memcached::RES_NOTFOUND);
$checks->same('get with a callback', $client->get('cached', function ($c, $key, &$value) { $value = "made for $key"; return true; }),
	'made for cached');
$checks->same('the callback stored it', $client->get('cached'), 'made for cached');
$checks->same('delete of nothing', $client->delete('nothing'), false);
$checks->same('delete of nothing, code', $code(), Memcached::RES_NOTFOUND);
$checks->same('replace of nothing', $client->replace('nothing', 1), false);
$checks->true('replace of nothing, code', in_array($code(), [Memcached::RES_NOTSTORED, Memcached::RES_NOTFOUND]), $code());
$checks->same('increment of nothing', $client->increment('nothing'), false);
$checks->same('touch of nothing', $client->touch('nothing', 10), false);
$checks->same('touch of nothing, code', $code(), Memcached::RES_NOTFOUND);
$checks->same('cas of nothing', $client->cas(1.0, 'nothing', 'x'), false);
$checks->same('long key', $client->set(str_repeat('k', 251), 1), false);
$checks->true('long key, code', in_array($code(), [Memcached::RES_BAD_KEY_PROVIDED, Memcached::RES_KEY_TOO_BIG]), $code());
$client->set('word', 'abc');
$checks->same('increment of a word', $client->increment('word'), false);
$checks->same('too large', connect([Memcached::OPT_COMPRESSION => false])->set('large', str_repeat('x', 2000000)), false);
$checks->same('alive after too large', $client->get('word'), 'abc');

// Values, by every serialiser.
$object = new stdClass();
$object->list = [1, 'two', null];
$values = ['string' => 'text', 'empty' => '', 'unicode' => "\u{fc}ml\u{e4}ut \u{20ac}", 'int' => 12345, 'negative' => -7,
	'float' => 1.5, 'true' => true, 'false' => false, 'null' => null, 'array' => ['a' => [1, 2], 'b' => null],
	'crlf' => "a\r\nEND\r\n", 'long' => str_repeat('text to pack ', 20000)];
$serialisers = ['php' => Memcached::SERIALIZER_PHP, 'igbinary' => Memcached::SERIALIZER_IGBINARY,
	'msgpack' => Memcached::SERIALIZER_MSGPACK, 'json' => Memcached::SERIALIZER_JSON_ARRAY];
foreach ($serialisers as $name => $serialiser) {
	$client->setOption(Memcached::OPT_SERIALIZER, $serialiser);
	foreach ($values as $key => $value)
		$checks->same("$name set $key", $client->set($key, $value), true);
	foreach ($values as $key => $value) {
		$checks->same("$name get $key", $client->get($key), $value);
		$checks->same("$name code $key", $code(), Memcached::RES_SUCCESS);
	}
}
$client->setOption(Memcached::OPT_SERIALIZER, Memcached::SERIALIZER_PHP);
$checks->same('object', $client->set('object', $object) ? $client->get('object') : null, $object);
$raw = connect([Memcached::OPT_COMPRESSION => false]);
$checks->same('largest', $raw->set('largest', str_repeat('0123456789', 100000)), true);
$checks->same('largest back', $raw->get('largest'), str_repeat('0123456789', 100000));
$checks->same('all bytes', $raw->set('bytes', implode('', array_map('chr', range(0, 255)))) ? strlen($raw->get('bytes')) : 0, 256);
$raw->setOption(Memcached::OPT_USER_FLAGS, 123);
$raw->set('flags', 'x');
$checks->same('user flags', $raw->get('flags', null, Memcached::GET_EXTENDED)['flags'], 123);

// Storage.
$client->setOption(Memcached::OPT_COMPRESSION, false);
$client->delete('s');
$checks->same('add', $client->add('s', '1'), true);
$checks->same('add again', $client->add('s', '2'), false);
$checks->true('add again, code', in_array($code(), [Memcached::RES_NOTSTORED, Memcached::RES_DATA_EXISTS]), $code());
$checks->same('replace', $client->replace('s', '3'), true);
$checks->same('append', $client->append('s', '4'), true);
$checks->same('prepend', $client->prepend('s', '0'), true);
$read = $client->get('s', null, Memcached::GET_EXTENDED);
$checks->same('after append', $read['value'], '034');
$checks->same('cas', $client->cas($read['cas'], 's', 'new'), true);
$checks->same('stale cas', $client->cas($read['cas'], 's', 'newer'), false);
$checks->same('stale cas, code', $code(), Memcached::RES_DATA_EXISTS);
$checks->same('after cas', $client->get('s'), 'new');
$checks->same('delete', $client->delete('s'), true);
$checks->same('after delete', $client->get('s'), false);

// Counters.
$client->set('n', 10);
$checks->same('increment', $client->increment('n'), 11);
$checks->same('increment by', $client->increment('n', 89), 100);
$checks->same('decrement', $client->decrement('n', 51), 49);
$checks->same('not below zero', $client->decrement('n', 1000), 0);
if ($binary) {
	$client->delete('made');
	$checks->same('increment makes it', $client->increment('made', 5, 100, 1000), 100);
	$checks->same('increment after', $client->increment('made', 5, 100, 1000), 105);
}

// Many at a time.
$many = [];
for ($i = 0; $i < 300; $i++)
	$many["many-$i"] = str_repeat("value $i ", $i % 40 + 1);
$checks->same('setMulti', $client->setMulti($many), true);
$checks->same('getMulti', $client->getMulti(array_keys($many), Memcached::GET_PRESERVE_ORDER), $many);
$checks->same('getMulti and nothing', $client->getMulti(['many-1', 'nothing']), ['many-1' => $many['many-1']]);
$extended = $client->getMulti(['many-1', 'many-2'], Memcached::GET_EXTENDED);
$checks->true('getMulti with cas', $extended['many-1']['cas'] > 0 && $extended['many-2']['cas'] > 0);
$checks->same('getDelayed', $client->getDelayed(['many-1', 'many-2'], true), true);
$checks->same('fetchAll', count($client->fetchAll()), 2);
$checks->same('deleteMulti', $client->deleteMulti(array_keys($many)), array_fill_keys(array_keys($many), true));
$checks->same('after deleteMulti', $client->getMulti(array_keys($many)), []);
$checks->same('setByKey', $client->setByKey('place', 'k', 'v'), true);
$checks->same('getByKey', $client->getByKey('place', 'k'), 'v');
$checks->same('deleteByKey', $client->deleteByKey('place', 'k'), true);

// Expiry.
$client->set('soon', 'x', 1);
$client->set('touched', 'x', 1000);
$client->set('later', 'x', 1000);
$client->set('absolute', 'x', time() + 1000);
// In the binary protocol it arrives as 0xffffffff, a time far ahead.
$checks->same('negative expiry', $client->set('gone', 'x', -1) ? $client->get('gone') : null, $binary ? 'x' : false);
$checks->same('touch', $client->touch('touched', 1), true);
$checks->becomes('expires', fn() => $client->get('soon'), false);
$checks->becomes('touched expires', fn() => $client->get('touched'), false);
$checks->same('another lives', $client->get('later'), 'x');
$checks->same('absolute time lives', $client->get('absolute'), 'x');

// Behaviours.
$prefixed = connect([Memcached::OPT_PREFIX_KEY => 'prefix:']);
$prefixed->set('p', 1);
$checks->same('prefix', $prefixed->getMulti(['p']), ['p' => 1]);
if (count($servers) === 1)
	$checks->same('prefix, really', $client->get('prefix:p'), 1);
$quiet = connect([Memcached::OPT_NOREPLY => true]);
$quiet->set('quiet', 'q');
$checks->becomes('noreply', fn() => $client->get('quiet'), 'q');
$buffered = connect([Memcached::OPT_BUFFER_WRITES => true]);
for ($i = 0; $i < 50; $i++)
	$buffered->set("buffered-$i", $i);
$buffered->flushBuffers();
$checks->becomes('buffered writes', fn() => $client->get('buffered-49'), 49);
$pool = new Memcached('pool');
$checks->same('persistent', $pool->isPersistent(), true);
$checks->same('quit', $client->quit(), true);
$checks->same('reconnected', $client->get('later'), 'x');
if (count($servers) > 1) {
	$used = [];
	for ($i = 0; $i < 100; $i++)
		$used[$client->getServerByKey("spread-$i")['port']] = true;
	$checks->same('every server has keys', count($used), count($servers));
}

// Administration.
foreach ($client->getStats() as $server => $row)
	foreach (['pid', 'uptime', 'version', 'curr_items', 'cmd_get', 'bytes', 'limit_maxbytes', 'threads'] as $name)
		$checks->true("stats $name of $server", isset($row[$name]), $row);
$checks->true('stats settings', $client->getStats('settings'));
foreach ($client->getVersion() as $server => $version)
	$checks->true("version of $server", preg_match('/^\d+\.\d+\.\d+$/', $version), $version);
$checks->same('flush', $client->flush(), true);
$checks->same('nothing left', $client->get('later'), false);
$checks->same('set after flush', $client->set('later', 'y') ? $client->get('later') : null, 'y');
$checks->done();
