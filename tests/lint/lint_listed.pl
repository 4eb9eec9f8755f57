#!/usr/bin/perl
# Nothing of the tree is built, run or packed by nobody. Named in Makefile.am or tests/tests.am are each
# source (a program of one source by its name without .c), each header that is not beside a source of its
# name, and each executable of the tests; all else is named or below a folder that is.
#   usage: lint_listed.pl [top folder of the tree]
use strict;
use warnings;
use File::Find;

my $top = $ARGV[0] // $ENV{ROLLCALL_SOURCE} // '.';
my (%listed, @mistakes);
for my $list ('Makefile.am', 'tests/tests.am') {
    open my $in, '<', "$top/$list" or die "$list: $!\n";
    while (my $line = <$in>) {
        next if $line =~ /^\s*#/;
        $listed{$_} = 1 for split /[\s=\\]+/, $line;
    }
}
my $count = 0;
for my $folder (qw(src counter phantom tools tests conf)) {
    next if !-d "$top/$folder";
    find({ no_chdir => 1, wanted => sub {
        return if m{/__pycache__/} || m{/\.[^/]*$} || /\.(o|pyc|log|trs)$/ || !-f;
        my $path = substr($_, length($top) + 1);
        (my $program = $path) =~ s/\.c$//;
        (my $source = $path) =~ s/\.h$/.c/;
        $count++;
        return if $listed{$path} || $listed{$program} || $listed{$source};
        my $itself = $path =~ /\.[ch]$/ || ($path =~ m{^tests/} && -x _);
        for (my $folder = $path; !$itself && $folder =~ s{/[^/]*$}{}; ) {
            return if $listed{$folder};
        }
        push @mistakes, "$path: in neither Makefile.am nor tests/tests.am";
    } }, "$top/$folder");
}
die "lint_listed: no files below $top\n" if !$count;
print "$_\n" for sort @mistakes;
printf "lint_listed: %d files, %d mistakes\n", $count, scalar @mistakes;
exit(@mistakes ? 1 : 0);
