#!/usr/bin/perl
# Every source, header, script and document of the tree is listed in Makefile.am (a unit test by its
# name without .c) or below a listed folder, so that nothing is built by nobody or left out of the archive.
#   usage: lint_listed.pl [top folder of the tree]
use strict;
use warnings;
use File::Find;

my $top = $ARGV[0] // $ENV{ROLLCALL_SOURCE} // '.';
my (%listed, @mistakes);
open my $in, '<', "$top/Makefile.am" or die "Makefile.am: $!\n";
while (my $line = <$in>) {
    next if $line =~ /^\s*#/;
    $listed{$_} = 1 for split /[\s=\\]+/, $line;
}
my $count = 0;
for my $folder (qw(src counter phantom tools tests conf)) {
    next if !-d "$top/$folder";
    find({ no_chdir => 1, wanted => sub {
        return if !-f || m{/__pycache__/} || m{/\.[^/]*$} || /\.(o|pyc|log|trs)$/;
        my $path = substr($_, length($top) + 1);
        (my $program = $path) =~ s/\.c$//;
        $count++;
        for (my $folder = $path; $folder =~ s{/[^/]*$}{}; ) {
            return if $listed{$folder}; # listed as a whole
        }
        push @mistakes, "$path: not in Makefile.am" if !$listed{$path} && !$listed{$program};
    } }, "$top/$folder");
}
die "lint_listed: no files below $top\n" if !$count;
print "$_\n" for sort @mistakes;
printf "lint_listed: %d files, %d mistakes\n", $count, scalar @mistakes;
exit(@mistakes ? 1 : 0);
