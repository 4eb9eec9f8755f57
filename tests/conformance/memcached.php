<?php
// php-memcached: see adapter.py.
[, $host, $port, $protocol] = $argv;
$client = new Memcached();
$client->setOption(Memcached::OPT_BINARY_PROTOCOL, $protocol === 'binary');
$client->setOption(Memcached::OPT_COMPRESSION, false); // append needs the value as it is
$client->addServer($host, (int)$port);
$token = null;

function is_missing(): bool
{
    global $client;
    return in_array($client->getResultCode(), [Memcached::RES_NOTFOUND, Memcached::RES_NOTSTORED]);
}

// false is a miss or a failure; the result code tells which.
function read_of(mixed $value): mixed
{
    global $client;
    if ($value === false && is_missing()) {
        return null;
    }
    return $value === false ? throw new Exception($client->getResultMessage()) : $value;
}

function write_of(bool $done): bool
{
    global $client;
    if (!$done && !is_missing() && $client->getResultCode() !== Memcached::RES_DATA_EXISTS) {
        throw new Exception($client->getResultMessage());
    }
    return $done;
}

function gets(string $key): mixed
{
    global $client, $token;
    $found = read_of($client->get($key, null, Memcached::GET_EXTENDED));
    $token = $found['cas'] ?? null;
    return $found['value'] ?? null;
}

$commands = [
    'set' => fn($key, $value) => write_of($client->set($key, $value)),
    'add' => fn($key, $value) => write_of($client->add($key, $value)),
    'replace' => fn($key, $value) => write_of($client->replace($key, $value)),
    'append' => fn($key, $value) => write_of($client->append($key, $value)),
    'prepend' => fn($key, $value) => write_of($client->prepend($key, $value)),
    'cas' => fn($key, $value) => write_of($client->cas($GLOBALS['token'], $key, $value)),
    'get' => fn($key) => read_of($client->get($key)),
    'gets' => gets(...),
    'many' => fn(...$keys) => $client->getMulti($keys),
    'incr' => fn($key, $delta) => read_of($client->increment($key, (int)$delta)),
    'decr' => fn($key, $delta) => read_of($client->decrement($key, (int)$delta)),
    'delete' => fn($key) => write_of($client->delete($key)),
    'touch' => fn($key) => write_of($client->touch($key, 100)),
    'version' => fn() => current($client->getVersion()),
    'stats' => fn() => current($client->getStats())['version'],
    'flush' => fn() => write_of($client->flush()),
];
if ($protocol === 'binary') {
    $commands['create'] = fn($key, $delta, $initial) =>
        read_of($client->increment($key, (int)$delta, (int)$initial));
}

function shown(mixed $result): string
{
    if (is_array($result)) {
        $words = ['many'];
        foreach ($result as $key => $value) {
            array_push($words, $key, $value);
        }
        return implode("\t", $words);
    }
    return match (true) {
        $result === null => 'none',
        is_bool($result) => $result ? 'true' : 'false',
        default => "value\t$result",
    };
}

while (($line = fgets(STDIN)) !== false) {
    $words = explode("\t", rtrim($line, "\n"));
    $command = $commands[array_shift($words)] ?? null;
    try {
        $answer = $command ? shown($command(...$words)) : 'unsupported';
    } catch (Throwable $problem) {
        $answer = "error\t" . strtr($problem->getMessage(), "\r\n\t", '   ');
    }
    echo $answer, "\n";
}
