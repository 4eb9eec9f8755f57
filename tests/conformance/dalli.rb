# ruby-dalli: see adapter.py.
require 'dalli'

host, port = ARGV
Dalli.logger.level = Logger::FATAL
CLIENT = Dalli::Client.new("#{host}:#{port}", socket_timeout: 10, compress: false)
RAW = { raw: true }.freeze
$token = nil

# Of a write comes the token; 0, nil or false when it was not done.
def done(result)
  result ? result != 0 : false
end

def gets(key)
  value, $token = CLIENT.get_cas(key)
  value
end

COMMANDS = {
  'set' => ->(key, value) { done(CLIENT.set(key, value, 0, RAW)) },
  'add' => ->(key, value) { done(CLIENT.add(key, value, 0, RAW)) },
  'replace' => ->(key, value) { done(CLIENT.replace(key, value, 0, RAW)) },
  'append' => ->(key, value) { done(CLIENT.append(key, value)) },
  'prepend' => ->(key, value) { done(CLIENT.prepend(key, value)) },
  'cas' => ->(key, value) { done(CLIENT.set_cas(key, value, $token, 0, RAW)) },
  'get' => ->(key) { CLIENT.get(key) },
  'gets' => method(:gets),
  'gat' => ->(key) { CLIENT.gat(key, 100) },
  'many' => ->(*keys) { CLIENT.get_multi(*keys) },
  'incr' => ->(key, delta) { CLIENT.incr(key, delta.to_i) },
  'decr' => ->(key, delta) { CLIENT.decr(key, delta.to_i) },
  'create' => ->(key, delta, initial) { CLIENT.incr(key, delta.to_i, 0, initial.to_i) },
  'delete' => ->(key) { done(CLIENT.delete(key)) },
  'touch' => ->(key) { done(CLIENT.touch(key, 100)) },
  'version' => -> { CLIENT.version.values.first },
  'stats' => -> { CLIENT.stats.values.first['version'] },
  'flush' => -> { CLIENT.flush_all.all? }
}.freeze

def shown(result)
  case result
  when nil then 'none'
  when true, false then result.to_s
  when Hash then ['many', *result.flatten].join("\t")
  else "value\t#{result}"
  end
end

$stdout.sync = true
$stdin.each_line(chomp: true) do |line|
  verb, *words = line.split("\t", -1)
  answer =
    begin
      COMMANDS.key?(verb) ? shown(COMMANDS[verb].call(*words)) : 'unsupported'
    rescue StandardError => e
      "error\t#{e.class}: #{e.message}".gsub(/[\r\n]+/, ' ')
    end
  puts answer
end
