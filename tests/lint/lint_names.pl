#!/usr/bin/perl
# Counts the functions of the product that share their name with one of another file: such a name
# says little in grep, gdb and perf. At most $SHARED_MAX may, and that only ever goes down.
#   usage: lint_names.pl [--list] [top folder of the tree]
# A function is what begins in the first column and ends in a parameter list before its `{`, as
# clang-format writes it. Each definition of a shared name counts, if one of them is static: others
# are a choice of configure's (tls_none.c). --list shows them. main() is every program's.
use strict;
use warnings;
use File::Find;

my $SHARED_MAX = 40;
my $list = @ARGV && $ARGV[0] eq '--list' ? shift @ARGV : 0;
my $top = $ARGV[0] // $ENV{ROLLCALL_SOURCE} // '.';
my (%places, %static, $functions);

sub take_file {
    my ($path) = @_;
    open my $in, '<', "$top/$path" or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    $text =~ s{/\*.*?\*/}{my $s = $&; $s =~ s/[^\n]/ /g; $s}gse;
    $text =~ s/__attribute__\(\(.*?\)\)//g;
    while ($text =~ /^( *[a-z][^;{}()=#]*?)\b(\w+)\([^;{}]*\)\n\{/gm) {
        my ($before, $name) = ($1, $2);
        my $line = 1 + (substr($text, 0, $-[2]) =~ tr/\n//);
        $functions++;
        $places{$name}{$path} //= $line;
        $static{$name} = 1 if $before =~ /\bstatic\b/;
    }
}

my @files;
for my $folder (qw(src counter phantom tools/rollcall)) {
    next if !-d "$top/$folder";
    find({ no_chdir => 1, wanted => sub {
        push @files, substr($_, length($top) + 1) if /\.[ch]$/ && -f;
    } }, "$top/$folder");
}
take_file($_) for sort @files;
die "lint_names: no functions below $top\n" if !$functions;

my $shared = 0;
for my $name (sort keys %places) {
    my @at = map { "$_:$places{$name}{$_}" } sort keys %{$places{$name}};
    next if @at < 2 || !$static{$name} || $name eq 'main';
    $shared += @at;
    print "$name: @at\n" if $list;
}
my $bad = $shared > $SHARED_MAX;
print "lint_names: rename one: no more than $SHARED_MAX may share a name (--list shows them)\n" if $bad;
printf "lint_names: %d functions, %d share a name with another\n", $functions, $shared;
exit($bad ? 1 : 0);
