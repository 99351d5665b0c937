# SPDX-License-Identifier: BSD-3-Clause
# dalli: use_dalli.rb HOST:PORT... [--user=U --password=P] [--ca=FILE]
require 'dalli'
require 'json'
require 'openssl'
require 'securerandom'

class Checks
  def initialize(name)
    @name = name
    @passed = @failed = 0
  end

  def right(what, condition, more = '')
    if condition
      @passed += 1
    else
      @failed += 1
      puts "FAIL #{what} #{more.to_s[0, 300]}"
    end
  end

  def same(what, got, wanted)
    right(what, got == wanted, "gave #{got.inspect[0, 200]}, not #{wanted.inspect[0, 200]}")
  end

  def raises(what, error)
    got = yield
    right(what, false, "gave #{got.inspect}, and no #{error}")
  rescue error
    @passed += 1
  end

  # Asks again until the answer is the wanted one: for expiry.
  def becomes(what, wanted)
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 20
    sleep 0.05 while (got = yield) != wanted && Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    same(what, got, wanted)
  end

  def part(name)
    yield
  rescue StandardError => e
    right(name, false, "ended by #{e.full_message(highlight: false)[0, 600]}")
  end

  def done
    puts "#{@name}: passed #{@passed} failed #{@failed}"
    exit(@failed.zero? && @passed.positive? ? 0 : 1)
  end
end

Dalli.logger.level = Logger::FATAL
options = ARGV.grep(/^--/).to_h { |word| word.delete_prefix('--').split('=', 2) }
servers = ARGV.grep_v(/^--/)
checks = Checks.new("dalli, #{servers.size} servers#{' SASL' if options['user']}#{' TLS' if options['ca']}")
common = { socket_timeout: 20, username: options['user'], password: options['password'] }.compact
if options['ca']
  context = OpenSSL::SSL::SSLContext.new
  context.ca_file = options['ca']
  context.verify_hostname = false
  context.verify_mode = OpenSSL::SSL::VERIFY_PEER
  common[:ssl_context] = context
end
connect = ->(more = {}) { Dalli::Client.new(servers, common.merge(more)) }
client = connect.call

if options['user']
  checks.part('authentication') do
    checks.raises('wrong password', Dalli::DalliError) { connect.call(password: 'wrong').get('x') }
  end
end

checks.part('reset') do
  client.set('counted', 'x')
  client.reset_stats
  checks.right('reset', client.stats.values.all? { |row| row['get_hits'] == '0' })
end

checks.part('refusals') do
  checks.same('get of nothing', client.get('nothing'), nil)
  checks.same('delete of nothing', client.delete('nothing'), nil)
  checks.same('replace of nothing', client.replace('nothing', 1), 0)
  checks.same('append to nothing', client.append('nothing', 'x'), false)
  checks.same('incr of nothing', client.incr('nothing'), nil)
  checks.same('touch of nothing', client.touch('nothing', 10), nil)
  checks.same('gat of nothing', client.gat('nothing', 10), nil)
  checks.same('cas of nothing', client.cas('nothing') { |v| v }, nil)
  client.set('word', 'abc', nil, raw: true)
  checks.raises('incr of a word', Dalli::DalliError) { client.incr('word') }
  noise = SecureRandom.bytes(2_000_000)
  checks.raises('too large for the client', Dalli::ValueOverMaxSize) { connect.call(value_max_bytes: 1 << 20).set('large', noise, nil, raw: true) }
  big = connect.call(value_max_bytes: 10_000_000)
  checks.raises('too large for the server', Dalli::DalliError) { big.set('large', noise, nil, raw: true) || raise(Dalli::DalliError) }
  checks.same('nothing was stored', client.get('large', raw: true), nil)
  checks.same('alive after too large', client.get('word', raw: true), 'abc')
  checks.raises('empty key', ArgumentError) { client.get('') }
  client.set('k' * 300, 'long') # dalli hashes it
  checks.same('long key', client.get('k' * 300), 'long')
end

checks.part('values') do
  values = { 'string' => 'text', 'empty' => '', 'unicode' => 'ümläut €', 'int' => 12_345, 'big' => 1 << 70,
             'float' => 1.5, 'true' => true, 'false' => false, 'array' => [1, 'two', nil], 'hash' => { a: [1] },
             'symbol' => :sym, 'crlf' => "a\r\nEND\r\n", 'large' => 'L' * 500_000, 'ключ' => 'unicode key' }
  [{}, { compress: true, compression_min_size: 10 }, { serializer: Marshal }].each do |more|
    other = connect.call(more)
    values.each { |key, value| checks.right("#{more.keys} set #{key}", other.set(key, value)) }
    values.each { |key, value| checks.same("#{more.keys} get #{key}", other.get(key), value) }
    found = other.get_multi(*values.keys, 'nothing').transform_keys { |key| key.dup.force_encoding('UTF-8') }
    checks.same("#{more.keys} get_multi", found, values)
  end
  json = connect.call(serializer: JSON)
  json.set('json', { 'a' => [1, nil] })
  checks.same('JSON', json.get('json'), { 'a' => [1, nil] })
  checks.right('largest', client.set('largest', '0123456789' * 100_000, nil, raw: true))
  checks.same('largest back', client.get('largest', raw: true), '0123456789' * 100_000)
end

checks.part('storage') do
  client.delete('s')
  checks.right('add', client.add('s', '1', 100, raw: true))
  checks.same('add again', client.add('s', '2', 100, raw: true), false)
  checks.right('replace', client.replace('s', '3', 100, raw: true))
  checks.same('append', client.append('s', '4'), true)
  checks.same('prepend', client.prepend('s', '0'), true)
  checks.same('after append', client.get('s', raw: true), '034')
  value, cas = client.get_cas('s')
  checks.same('get_cas', value, '034')
  checks.right('set_cas', client.set_cas('s', 'new', cas))
  checks.same('stale set_cas', client.set_cas('s', 'newer', cas), false)
  checks.same('stale replace_cas', client.replace_cas('s', 'newer', cas), false)
  checks.same('stale delete_cas', client.delete_cas('s', cas), false)
  checks.right('cas block', client.cas('s') { |old| "#{old}er" })
  checks.same('after cas', client.get('s'), 'newer')
  checks.right('cas! block', client.cas!('fresh') { |old| "was #{old.inspect}" })
  checks.same('after cas!', client.get('fresh'), 'was nil')
  checks.same('fetch', client.fetch('made') { 'made' }, 'made')
  checks.same('fetched', client.fetch('made') { 'again' }, 'made')
  checks.same('get_multi_cas', client.get_multi_cas('s', 'made').transform_values(&:first), { 's' => 'newer', 'made' => 'made' })
  checks.same('delete', client.delete('s'), true)
  checks.same('after delete', client.get('s'), nil)
end

checks.part('counters') do
  client.delete('n')
  checks.same('incr makes it', client.incr('n', 5, 100, 10), 10)
  checks.same('incr', client.incr('n', 90), 100)
  checks.same('decr', client.decr('n'), 99)
  checks.same('not below zero', client.decr('n', 1000), 0)
  checks.same('decr makes it', client.decr('m', 1, 100, 7), 7)
  client.set('wrap', ((1 << 64) - 1).to_s, nil, raw: true)
  checks.same('wraps', client.incr('wrap', 2), 1)
end

checks.part('quiet and many') do
  client.multi { 300.times { |i| client.set("many-#{i}", "value #{i} " * (i % 40 + 1)) } }
  many = (0...300).to_h { |i| ["many-#{i}", "value #{i} " * (i % 40 + 1)] }
  checks.becomes('quiet sets', many) { client.get_multi(*many.keys) }
  seen = {}
  client.get_multi(*many.keys) { |key, value| seen[key] = value }
  checks.same('get_multi with a block', seen, many)
  client.multi { many.each_key { |key| client.delete(key) } }
  checks.becomes('quiet deletes', {}) { client.get_multi(*many.keys) }
end

checks.part('expiry') do
  client.set('soon', 'x', 1)
  client.set('touched', 'x', 1000)
  client.set('taken', 'x', 1000)
  client.set('later', 'x', 1000)
  checks.right('touch', client.touch('touched', 1))
  checks.same('gat', client.gat('taken', 1), 'x')
  checks.becomes('expires', nil) { client.get('soon') }
  checks.becomes('touched expires', nil) { client.get('touched') }
  checks.becomes('gat expires', nil) { client.get('taken') }
  checks.same('another lives', client.get('later'), 'x')
end

checks.part('connections') do
  client.close
  checks.same('reconnected', client.get('later'), 'x')
  spaced = connect.call(namespace: 'space')
  spaced.set('k', 'v')
  checks.same('namespace', spaced.get('k'), 'v')
  checks.same('namespace, from outside', client.get('space:k'), 'v')
  checks.same('four threads', Array.new(4) { |i| Thread.new { 50.times.map { |j| client.set("t-#{i}-#{j}", j); client.get("t-#{i}-#{j}") } } }.map(&:value),
              [(0...50).to_a] * 4)
  client.alive!
end

checks.part('stats') do
  client.stats.each_value do |row|
    %w[pid uptime version curr_items cmd_get bytes limit_maxbytes threads].each { |name| checks.right("stats #{name}", row.key?(name)) }
  end
  checks.right('stats items', client.stats(:items).values.all?(Hash))
  checks.right('stats settings', client.stats(:settings).values.all? { |row| row['maxconns'] })
  checks.right('stats slabs', client.stats(:slabs).values.all?(Hash))
  checks.right('version', client.version.values.all? { |version| version =~ /^\d+\.\d+\.\d+/ })
end

checks.part('flush') do
  client.flush
  checks.same('nothing left', client.get('later'), nil)
  checks.right('set after flush', client.set('later', 'y'))
  checks.same('and get', client.get('later'), 'y')
end

checks.done
