// SPDX-License-Identifier: BSD-3-Clause
// memjs (binary): use_memjs.js HOST:PORT... [--user=U --password=P]
'use strict';
const memjs = require('memjs');

const servers = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const option = (name) => (process.argv.find((word) => word.startsWith(`--${name}=`)) || '').split('=')[1];
const counts = { passed: 0, failed: 0 };
const options = { username: option('user'), password: option('password'), timeout: 20, conntimeout: 20, retries: 1 };
const quiet = { log() {} };

function right(what, condition, more) {
  if (condition) counts.passed++;
  else {
    counts.failed++;
    console.log(`FAIL ${what} ${more === undefined ? '' : String(more).slice(0, 300)}`);
  }
}

function same(what, got, wanted) {
  right(what, JSON.stringify(got) === JSON.stringify(wanted), `gave ${JSON.stringify(got)}, not ${JSON.stringify(wanted)}`);
}

async function refused(what, promise) {
  try {
    const got = await promise;
    right(what, got === false, `gave ${JSON.stringify(got)}`);
  } catch {
    right(what, true);
  }
}

async function becomes(what, ask, wanted) {
  const end = Date.now() + 20000;
  let got;
  while ((got = await ask()) !== wanted && Date.now() < end) await new Promise((done) => setTimeout(done, 50));
  same(what, got, wanted);
}

async function part(what, run) {
  try {
    await run();
  } catch (error) {
    right(what, false, `ended by ${error.stack || error}`);
  }
}

async function main() {
  const client = memjs.Client.create(servers.join(','), { ...options, logger: quiet });
  const get = async (key) => {
    const { value } = await client.get(key);
    return value === null ? null : value.toString();
  };

  if (options.username) {
    const wrong = memjs.Client.create(servers.join(','), { ...options, password: 'wrong', logger: quiet });
    await refused('wrong password', wrong.set('x', 'y', {}));
    wrong.close();
  }
  await part('refusals', async () => {
    same('get of nothing', await get('nothing'), null);
    same('delete of nothing', await client.delete('nothing'), false);
    same('replace of nothing', await client.replace('nothing', 'x', {}), false);
    await refused('append to nothing', client.append('nothing', 'x'));
    same('touch of nothing', await client.touch('nothing', 10), false);
    await client.set('word', 'abc', {});
    await refused('increment of a word', client.increment('word', 1, {}).then(({ success }) => success));
    await refused('too large', client.set('large', Buffer.alloc(2000000, 'x'), {}));
    same('alive after it', await get('word'), 'abc');
  });
  await part('values', async () => {
    const values = { string: 'text', empty: '', unicode: 'ümläut €', crlf: 'a\r\nEND\r\n', large: '0123456789'.repeat(50000),
      largest: 'x'.repeat(1000000), 'schlüssel': 'unicode key' };
    for (const [key, value] of Object.entries(values)) same(`set ${key}`, await client.set(key, value, { expires: 1000 }), true);
    for (const [key, value] of Object.entries(values)) same(`get ${key}`, await get(key), value);
    const bytes = Buffer.from([...Array(256).keys()]);
    await client.set('bytes', bytes, {});
    right('all bytes', (await client.get('bytes')).value.equals(bytes));
  });
  await part('storage', async () => {
    same('add', await client.add('s', '1', {}), true);
    same('add again', await client.add('s', '2', {}), false);
    same('replace', await client.replace('s', '3', {}), true);
    same('append', await client.append('s', '4'), true);
    same('prepend', await client.prepend('s', '0'), true);
    same('after append', await get('s'), '340'); // its prepend sends the opcode of append
    same('delete', await client.delete('s'), true);
    same('after delete', await get('s'), null);
  });
  await part('counters', async () => {
    same('increment makes it', (await client.increment('n', 5, { initial: 10 })).value, 10);
    same('increment', (await client.increment('n', 90, {})).value, 100);
    same('decrement', (await client.decrement('n', 1, {})).value, 99);
    same('not below zero', (await client.decrement('n', 1000, {})).value, 0);
  });
  await part('many at a time', async () => {
    const all = [...Array(300).keys()];
    same('300 sets under way', await Promise.all(all.map((i) => client.set(`many-${i}`, `value ${i} `.repeat(i % 40), {}))),
      all.map(() => true));
    same('300 gets under way', await Promise.all(all.map((i) => get(`many-${i}`))), all.map((i) => `value ${i} `.repeat(i % 40)));
    same('300 deletes', await Promise.all(all.map((i) => client.delete(`many-${i}`))), all.map(() => true));
  });
  await part('expiry', async () => {
    await client.set('soon', 'x', { expires: 1 });
    await client.set('touched', 'x', { expires: 1000 });
    await client.set('later', 'x', { expires: 1000 });
    same('touch', await client.touch('touched', 1), true);
    await becomes('expires', () => get('soon'), null);
    await becomes('touched expires', () => get('touched'), null);
    same('another lives', await get('later'), 'x');
  });
  await part('administration', async () => {
    const report = await new Promise((done, fail) => client.stats((error, _server, stats) => (error ? fail(error) : done(stats))));
    for (const name of ['pid', 'uptime', 'curr_items', 'cmd_get', 'bytes', 'limit_maxbytes']) right(`stats ${name}`, name in report);
    await client.flush();
    same('nothing left', await get('later'), null);
  });
  client.close();
  console.log(`memjs: passed ${counts.passed} failed ${counts.failed}`);
  process.exit(counts.failed || !counts.passed ? 1 : 0);
}

main();
