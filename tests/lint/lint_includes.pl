#!/usr/bin/perl
# Holds the layers: every #include of the tree against tests/lint/layers.txt.
#   usage: lint_includes.pl [top folder of the tree]
# Rules: a quoted include is written from the root ("base/buf.h", "counter/table.h") and names a file
# that exists; it goes only where the table allows, and the table only to folders above in it, so folders
# form no cycle; a library has the few includers the table names.
use strict;
use warnings;
use File::Find;

my $top = $ARGV[0] // $ENV{ROLLCALL_SOURCE} // '.';
my (%may, %height, @only, @mistakes);

# How high a folder stands, or the one a header of the table is in: that of the tests of a folder as high as
# the folder itself. undef: it is not in the table (so far).
sub height {
    my ($name) = @_;
    $name =~ s{/[^/]+\.h$}{};
    my ($tested) = $name =~ m{^tests/unit/(.*)};
    $tested = '' if !defined $tested;
    return $height{"src/$tested"} // $height{$tested} // $height{$name};
}

sub read_table {
    open my $in, '<', "$top/tests/lint/layers.txt" or die "tests/lint/layers.txt: $!\n";
    while (my $line = <$in>) {
        next if $line =~ /^\s*(#|$)/;
        my ($left, $right) = $line =~ /^(\S+):\s+(.*?)\s*$/ or die "layers.txt:$.: not understood\n";
        my @right = grep { $_ ne '-' } split ' ', $right;
        if ($left =~ /^</) { push @only, [substr($left, 1), \@right]; next; }
        $height{$left} = $.;
        for my $lower (@right) {
            next if (height($lower) // $.) < height($left);
            push @mistakes, "layers.txt:$.: $left may not include $lower, which does not stand below it";
        }
        $may{$left} = [@right, $left];
    }
    for my $folder (grep { !m{^(tests|tools)/} } keys %may) {
        (my $name = $folder) =~ s{^src/}{};
        push @{ $may{"tests/unit/$name"} }, @{ $may{$folder} }, "tests/unit/$name";
    }
    push @{ $may{$_} }, 'tests/support' for grep { m{^tests/} } keys %may;
}

# The longest name first, so that tests/unit/base is found before anything shorter.
sub folder_of {
    my ($path) = @_;
    for my $folder (sort { length $b <=> length $a } keys %may) {
        return $folder if index($path, "$folder/") == 0;
    }
    return undef;
}

# The path from the top of a header as written in an include; undef if it is none of ours.
sub resolve {
    my ($header) = @_;
    for my $path ("src/$header", $header) { return $path if -f "$top/$path"; }
    return undef;
}

sub check_ours {
    my ($where, $path, $target, $header) = @_;
    my $from = folder_of($path);
    my $to = folder_of($target);
    if (!defined $from || !defined $to) {
        push @mistakes, "$where: \"$header\" is in no folder of layers.txt" if !defined $to;
        push @mistakes, "$where: this file is in no folder of layers.txt" if !defined $from;
        return;
    }
    my $allowed = grep { $_ eq $to || $_ eq $target } @{ $may{$from} };
    push @mistakes, "$where: $from may not include \"$header\"" if !$allowed;
}

sub check_library {
    my ($where, $path, $header) = @_;
    for my $rule (@only) {
        my ($prefix, $places) = @$rule;
        next if index($header, $prefix) != 0;
        return if grep { index($path, $_) == 0 } @$places;
        push @mistakes, "$where: <$header> may be included only by @$places";
        return;
    }
    push @mistakes, "$where: write \"$header\", with quotes: it is ours" if resolve($header);
}

# A test may name a header that lies beside it without its folder.
sub beside {
    my ($path, $header) = @_;
    my ($folder) = $path =~ m{^(tests/.*)/} or return 0;
    return $header !~ m{/} && -f "$top/$folder/$header";
}

sub check_file {
    my ($path) = @_;
    open my $in, '<', "$top/$path" or die "$path: $!\n";
    while (my $line = <$in>) {
        next if $line !~ /^\s*#\s*include\s*(\S.*?)\s*$/;
        my $what = $1;
        my $where = "$path:$.";
        if ($what =~ /^<([^>]+)>/) { check_library($where, $path, $1); next; }
        if ($what !~ /^"([^"]+)"/) { push @mistakes, "$where: include of a macro"; next; }
        my $header = $1;
        next if $header eq 'config.h';
        next if beside($path, $header);
        my $target = $header =~ m{(^|/)\.\.?/} ? undef : resolve($header);
        if (!defined $target) { push @mistakes, "$where: \"$header\" is no file from the root or src"; next; }
        check_ours($where, $path, $target, $header);
    }
}

read_table();
my @files;
for my $folder (qw(src counter phantom tools/rollcall tests)) {
    next if !-d "$top/$folder";
    find({ no_chdir => 1, wanted => sub {
        push @files, substr($_, length($top) + 1) if /\.[ch]$/ && -f;
    } }, "$top/$folder");
}
die "lint_includes: no sources below $top\n" if !@files;
check_file($_) for sort @files;
print "$_\n" for @mistakes;
printf "lint_includes: %d files, %d mistakes\n", scalar @files, scalar @mistakes;
exit(@mistakes ? 1 : 0);
