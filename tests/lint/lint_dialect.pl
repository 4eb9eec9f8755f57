#!/usr/bin/perl
# Holds what clang-format leaves open, so that the tree is written in one dialect:
#   sizeof(x), never `sizeof x`; braces around every body of if, else, for, while and do;
#   a file opens with one comment that says what it is for, or the header of its name does.
#   usage: lint_dialect.pl [top folder of the tree]
use strict;
use warnings;
use File::Find;

my $top = $ARGV[0] // $ENV{ROLLCALL_SOURCE} // '.';
my ($files, @mistakes) = (0);

# The text with everything but code turned into blanks; lines stay where they are.
sub blank {
    my ($text) = @_;
    my $keep_lines = sub { my ($s) = @_; $s =~ s/[^\n]/ /g; return $s; };
    $text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}
              {defined $1 ? $keep_lines->($1) : '0' . (' ' x (length($2) - 1))}gse;
    $text =~ s{^([ \t]*#(?:[^\n]*\\\n)*[^\n]*)}{$keep_lines->($1)}gme;
    return $text;
}

sub complain {
    my ($path, $text, $at, $what) = @_;
    my $line = 1 + (substr($text, 0, $at) =~ tr/\n//);
    push @mistakes, "$path:$line: $what";
}

my $balanced = qr/(\((?:[^()]++|(?1))*\))/;

sub check_file {
    my ($path) = @_;
    open my $in, '<', "$top/$path" or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    push @mistakes, "$path:1: a file opens with a comment that says what it is for"
        if $text !~ m{\A/\*} && !-e "$top/" . $path =~ s/\.c$/.h/r;
    $text = blank($text);
    while ($text =~ /\bsizeof\b(?!\s*\()/g) {
        complain($path, $text, $-[0], 'sizeof without parentheses');
    }
    while ($text =~ /\b(?:if|for|while)\s*$balanced\s*([^\s{])/g) {
        my ($at, $next) = ($-[0], $2);
        my $tail = substr($text, 0, $at) =~ /\}\s*$/ && $next eq ';'; # do { } while ();
        complain($path, $text, $at, 'a body without braces') if !$tail && $next ne '\\';
    }
    while ($text =~ /\b(?:else(?!\s*(?:if\b|\{|\\))|do(?!\s*(?:\{|\\)))\b/g) {
        complain($path, $text, $-[0], 'a body without braces');
    }
    $files++;
}

find({
    no_chdir => 1,
    wanted => sub {
        my $path = $File::Find::name;
        $path =~ s{^\Q$top\E/}{};
        check_file($path) if $path =~ /\.[ch]$/;
    },
}, grep { -d } map { "$top/$_" } qw(src counter phantom tools tests));

die "lint_dialect: no sources below $top\n" if !$files;
print "$_\n" for sort @mistakes;
printf "lint_dialect: %d files, %d mistakes\n", $files, scalar @mistakes;
exit(@mistakes ? 1 : 0);
