#!/usr/bin/env bash
# perl: strings, arrays and nested hashes that come and go.
#
# The interpreter is measured, without a shell (`env` becomes it). Debian's perl has no allocator:
# by LD_DEBUG=bindings each scalar's string and each hash's table is a call of the C library's
# malloc or realloc, or the preloaded one; the heads of scalars come from arenas of 4 KiB.
source "${BASH_SOURCE[0]%/*}/common.sh"
[ "$verb" = prepare ] || fail "$verb: give prepare"
cat >"$name.pl" <<'PL'
use strict;
use warnings;
my ($rounds, $count) = ($ARGV[0], 20000);
my %kept;
for my $round (1 .. $rounds) {
    my (%index, $text);
    for my $i (1 .. $count) {
        my $word = "word-" . ($i * 7919 % 20011) . ("x" x ($i % 40));
        push @{ $index{ length $word }{$word} }, $i;
        $text .= "$word,";
    }
    my @words = split /,/, $text;
    @words == $count or die "split gave " . @words . " words\n";
    my @sorted = sort { reverse($a) cmp reverse($b) } @words;
    (my $upper = join " ", @sorted) =~ s/(\w+)-(\d+)/\U$1\E=$2/g;
    (() = $upper =~ /WORD=/g) == $count or die "the substitution missed words\n";
    my $sum = 0;
    for my $words (values %index) { $sum += $_ for map { @$_ } values %$words }
    $sum == $count * ($count + 1) / 2 or die "the hashes hold $sum\n";
    $kept{ $round % 3 } = \%index;
}
PL
measure env PERL_HASH_SEED=0 perl "$dir/$name.pl" "$(sized 4 24)"
