#!/usr/bin/perl
# Holds the shape of the code: functions of at most 70 lines (signature to closing brace), blocks
# nested at most 3 deep, files of at most 600 lines. And of the seams: an engine and a kind of table
# together have at most so many functions that are called through pointers.
#   usage: lint_functions.pl [top folder of the tree]
# Reads C by its brackets: comments, literals and preprocessor lines are blanked, then a `{` that
# follows a parameter list at file level opens a function, and one that follows if, for, while, do,
# else, switch, a label or nothing opens a block. Initialisers and compound literals do not nest.
use strict;
use warnings;
use File::Find;

my $LINES_MAX = 70;
my $DEPTH_MAX = 3;
my $FILE_MAX  = 600;
my $POINTERS_MAX = 33;
my %seams = ('src/engine/engine.h' => 'engine_functions', 'src/row/table_kind.h' => 'table_kind');
my $top = $ARGV[0] // $ENV{ROLLCALL_SOURCE} // '.';
my ($functions, @mistakes) = (0);

# The text with everything but code turned into blanks; lines stay where they are.
sub blank {
    my ($text) = @_;
    my $keep_lines = sub { my ($s) = @_; $s =~ s/[^\n]/ /g; return $s; };
    $text =~ s{(/\*.*?\*/|//[^\n]*)|("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')}
              {defined $1 ? $keep_lines->($1) : '0' . (' ' x (length($2) - 1))}gse;
    $text =~ s{^([ \t]*#(?:[^\n]*\\\n)*[^\n]*)}{$keep_lines->($1)}gme;
    return $text;
}

# What the `{` behind `before` (the text since the last statement or block) opens, in a function.
sub is_block {
    my ($before) = @_;
    return 1 if $before =~ /^\s*$/ || $before =~ /:\s*$/;
    return 1 if $before =~ /^\s*(?:(?:case\b.*|default|\w+)\s*:\s*)?(?:\}\s*)?(?:if|for|while|do|else|switch)\b/s;
    return $before =~ /^\s*\w+\s*\(.*\)\s*$/s; # a macro that loops
}

sub check_file {
    my ($path) = @_;
    open my $in, '<', "$top/$path" or die "$path: $!\n";
    my $text = do { local $/; <$in> };
    my $lines = ($text =~ tr/\n//);
    push @mistakes, "$path: $lines lines; at most $FILE_MAX" if $lines > $FILE_MAX;
    $text = blank($text);

    my @open;              # kinds of the braces open: function, block, other
    my ($line, $parens, $before, $first_line) = (1, 0, '', 1);
    my ($name, $start, $deepest, $deepest_line);
    while ($text =~ /\G(\n|[(){};]|[^\n(){};]+)/g) {
        my $token = $1;
        if ($token eq "\n") { $line++; $before .= ' '; next; }
        $first_line = $line if $before =~ /^\s*$/ && $token =~ /\S/;
        if ($token eq '(') { $parens++; }
        if ($token eq ')') { $parens--; }
        if ($token eq '{') {
            my $kind = 'other';
            if (!@open && $before =~ /(\w+)\s*\(.*\)\s*$/s && $before !~ /=/) {
                ($kind, $name, $start, $deepest, $deepest_line) = ('function', $1, $first_line, 0, 0);
                ($name) = $before =~ /(\w+)\s*\(/;
            } elsif (@open && $open[0] eq 'function' && !$parens && $open[-1] ne 'other'
                     && is_block($before)) {
                $kind = 'block';
            }
            push @open, $kind;
            my $depth = grep { $_ eq 'block' } @open;
            ($deepest, $deepest_line) = ($depth, $line) if $kind eq 'block' && $depth > $deepest;
            $before = '' if $kind ne 'other';
            next;
        }
        if ($token eq '}') {
            my $kind = pop(@open) // 'other';
            if ($kind eq 'function') {
                $functions++;
                my $length = $line - $start + 1;
                push @mistakes, "$path:$start: $name has $length lines; at most $LINES_MAX"
                    if $length > $LINES_MAX;
                push @mistakes, "$path:$deepest_line: $name nests $deepest deep; at most $DEPTH_MAX"
                    if $deepest > $DEPTH_MAX;
            }
            $before = '' if $kind ne 'other' || !@open;
            next;
        }
        if ($token eq ';' && !$parens) { $before = ''; next; }
        $before .= $token;
    }
    push @mistakes, "$path: brackets do not match (this lint cannot read it)" if @open;
}

# How many members of a struct are pointers to functions. A struct that is not there is a mistake.
sub count_pointers {
    my ($path, $struct) = @_;
    open my $in, '<', "$top/$path" or die "$path: $!\n";
    my $text = blank(do { local $/; <$in> });
    my ($body) = $text =~ /^struct $struct \{(.*?)^\};/ms;
    push @mistakes, "$path: no struct $struct" if !defined $body;
    return scalar(() = ($body // '') =~ /^ {4}\w[^()]*\(\*\w+\)\(/mg);
}

my @files;
for my $folder (qw(src counter phantom tools/rollcall)) {
    next if !-d "$top/$folder";
    find({ no_chdir => 1, wanted => sub {
        push @files, substr($_, length($top) + 1) if /\.[ch]$/ && -f;
    } }, "$top/$folder");
}
die "lint_functions: no sources below $top\n" if !@files;
check_file($_) for sort @files;
my $pointers = 0;
$pointers += count_pointers($_, $seams{$_}) for sort keys %seams;
push @mistakes, "$pointers functions are called through " . join(' and ', sort values %seams)
    . "; at most $POINTERS_MAX" if $pointers > $POINTERS_MAX;
print "$_\n" for @mistakes;
printf "lint_functions: %d files, %d functions, %d of them through pointers, %d mistakes\n",
    scalar @files, $functions, $pointers, scalar @mistakes;
exit(@mistakes ? 1 : 0);
