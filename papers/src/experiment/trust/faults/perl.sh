cat > load.pl <<'X'
my (%of, @all);
push @all, "x" x ($_ % 700) for 1 .. 20000;
$of{$_ % 4001}{$_} = $all[$_] . $_ for 0 .. 15000;
my $long = ""; $long .= "$_," for 1 .. 200000;
my @large = map { chr(65 + $_) x (400000 * $_) } 1 .. 12;
splice @all, 100, 15000;
print join(" ", scalar(@all), scalar(keys %of), length $long, map { length } @large), "\n";
print substr(join("", sort map { $of{$_}{$_} // "" } keys %of), 0, 200), "\n";
X
command -v perl
echo load.pl
