# Cache::Memcached and Cache::Memcached::Fast: see adapter.py. The fourth argument names the module.
use strict;
use warnings;

my ($host, $port, undef, $module) = @ARGV;
eval "require $module; 1" or die $@;
my %options = (servers => ["$host:$port"]);
$options{utf8} = 0 if $module eq 'Cache::Memcached::Fast';
my $client = $module->new(\%options);
my $token;
$| = 1;

# What both modules give: 1, a false value, undef when the server refused.
sub truth { $_[0] ? 'true' : 'false' }
sub value { defined $_[0] ? "value\t$_[0]" : 'none' }

my %commands = (
    (map { my $verb = $_; ($verb => sub { truth($client->$verb(@_)) }) }
        qw(set add replace append prepend delete)),
    # A number that is 0 comes as 0E0 or 0 but true.
    (map { my $verb = $_; ($verb => sub {
        my $number = $client->$verb(@_);
        defined $number && $number ne '' ? 'value' . "\t" . ($number + 0) : 'none';
    }) } qw(incr decr)),
    get => sub { value($client->get($_[0])) },
    many => sub { join "\t", 'many', %{ $client->get_multi(@_) } },
    flush => sub { truth($client->flush_all) },
);
if ($client->can('gets')) {
    $commands{gets} = sub {
        my $found = $client->gets($_[0]);
        $token = $found->[0];
        value($found->[1]);
    };
    $commands{cas} = sub { truth($client->cas($_[0], $token, $_[1])) };
}
$commands{touch} = sub { truth($client->touch($_[0], 100)) } if $client->can('touch');
$commands{gat} = sub { value($client->gat(100, $_[0])) } if $client->can('gat');
$commands{version} = sub { value((values %{ $client->server_versions })[0]) }
    if $client->can('server_versions');
$commands{stats} = sub { value($client->stats('misc')->{hosts}{"$host:$port"}{misc}{version}) }
    if $client->can('stats');

while (my $line = <STDIN>) {
    chomp $line;
    my ($verb, @words) = split /\t/, $line, -1;
    no warnings 'numeric';
    my $answer = !$commands{$verb} ? 'unsupported' : eval { $commands{$verb}->(@words) };
    ($answer = "error\t$@") =~ s/[\r\n]+/ /g if !defined $answer;
    print "$answer\n";
}
