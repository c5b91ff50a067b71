#!/usr/bin/perl
# The command that compares two configurations: finds a large difference where it is, none where there is none, and
# says what is wrong with its input.

use strict;
use warnings;
use utf8;
use File::Temp ();
use List::Util qw(sum);
use POSIX qw(setsid);
use Test::More;
use RpTest;

plan skip_all => 'the servers of a comparison are started without sanitizers and valgrind'
    if $ENV{RP_LD_PRELOAD} || $ENV{RP_VALGRIND};

my $repo    = $RpTest::Build::REPO;
my $verdict = ($ENV{RP_BUILD} || "$repo/build/release") . '/bench/verdict';
my $temp    = File::Temp->newdir('rpcompare-XXXXXX', TMPDIR => 1);
chmod 0755, "$temp" or die "$temp: $!\n";
mkdir "$temp/runs"  or die "$temp/runs: $!\n";

sub write_file {
    my ($name, $text) = @_;
    open my $out, '>', "$temp/$name" or die "$temp/$name: $!\n";
    print $out $text;
    close $out or die "$temp/$name: $!\n";
    return "$temp/$name";
}

sub read_file {
    my ($name) = @_;
    open my $in, '<:encoding(UTF-8)', "$temp/$name" or die "$temp/$name: $!\n";
    local $/;
    return scalar(<$in>) // '';
}

sub begin {
    my ($env, @command) = @_;
    my $pid = fork // die "fork: $!\n";
    return $pid if $pid;
    setsid();
    %ENV = (%ENV, RP_VERDICT => $verdict, TMPDIR => "$temp/runs", %$env);
    open STDIN,  '<', "$temp/in"  or POSIX::_exit(126);
    open STDOUT, '>', "$temp/out" or POSIX::_exit(126);
    open STDERR, '>', "$temp/err" or POSIX::_exit(126);
    exec { $command[0] } @command or POSIX::_exit(127);
}

sub result {
    my ($pid) = @_;
    waitpid $pid, 0;
    return { status => $? >> 8, out => read_file('out'), err => read_file('err') };
}

sub run { return result(begin(@_)) }

sub compare {
    my ($env, @arguments) = @_;
    return run($env, "$repo/conf/compare.sh", @arguments);
}

# The processes and files that belong to comparisons of this test.
sub left_over {
    my @processes = grep { (command_line($_) // '') =~ m{\Q$temp\E/runs/} } glob '/proc/[0-9]*';
    return @processes, glob "$temp/runs/*";
}

sub command_line {
    open my $in, '<', "$_[0]/cmdline" or return;
    local $/;
    return scalar <$in>;
}

# The rows of the table: name => {a, b, diff, verdict}; and what the sentences say for certain: name => [word, µs].
sub table {
    my ($text) = @_;
    return { map { /^(\w+) +([\d.]+) +([\d.]+) +([+-][\d.]+) .*  ([a-z ]+)$/
        ? ($1 => { a => $2, b => $3, diff => $4, verdict => $5 }) : () } split /\n/, $text };
}

sub certain {
    my ($text) = @_;
    return { map { /^(.+?): (slower|faster) by ([\d.]+) µs/ ? ($1 => [$2, $3]) : () } split /\n/, $text };
}

sub certain_spans { return grep { /post_read_request.*setenvif/ } keys %{ certain($_[0]) } }

binmode Test::More->builder->$_, ':encoding(UTF-8)' for qw(output failure_output todo_output);
write_file('in', '');

# ---- judging, with rounds of known truth

# Five phases of 10 µs; B is slower by this much in setenvif; every sum varies by a per cent.
sub rounds_of {
    my ($count, $more_us) = @_;
    my @phases = qw(read setenvif map handler network);
    my $text   = '';
    srand 5;
    for my $round (1 .. $count) {
        for my $side (qw(a b aa)) {
            my %sum = map { $_ => 10_000_000 + int rand 100_000 } @phases;
            $sum{setenvif} += 1_000_000 * $more_us if $side eq 'b';
            my $total = sum(values %sum);
            $text .= join '', map { "$round\t$side\t1000\t$_\n" } "$total\ttotal",
                map { "$sum{$_}\tphase: $_" } @phases;
            $text .= "$round\t$side\t1000\t0\tphase: auth\n";
        }
        $text .= "$round\ttime\t0\t1000000000\t-\n";
    }
    return $text;
}

sub judge {
    my ($input, @options) = @_;
    write_file('in', $input);
    my $judged = run({}, $verdict, @options);
    write_file('in', '');
    return $judged;
}

my $judged = judge(rounds_of(20, 5));
my $rows   = table($judged->{out});
is $judged->{status}, 0, 'twenty rounds with little noise are enough for every answer' or diag $judged->{out};
is $rows->{setenvif}{verdict}, 'slower', 'a part that needs more time is slower';
is $rows->{total}{verdict},    'slower', 'so is the total';
is_deeply [grep { $rows->{$_}{verdict} ne 'no difference' } qw(read map handler network)], [],
    'the other parts are not different';
ok !$rows->{auth}, 'a part that no request entered is not compared';
cmp_ok abs($rows->{setenvif}{diff} - 5), '<', 0.2, 'the difference is the one that was put in';
is_deeply [sort keys %{ certain($judged->{out}) }], [qw(setenvif total)], 'what changed is said in sentences';
$judged = judge(rounds_of(20, 0), '--brief');
is $judged->{status}, 0, 'no difference is a sure answer as well';
like $judged->{out}, qr/\Atotal: no difference: at most ±[^\n]*\n\z/, 'and then one sentence is all that is said';
$judged = judge(rounds_of(5, 5));
is $judged->{status}, 3, 'five rounds are too few to be sure' or diag $judged->{out};
is $judged->{out} =~ /inf|nan/i ? $judged->{out} : '', '', 'an interval that is not known is not printed as a number';
for my $bad ('', "nonsense\n", "1\tc\t5\t5\ttotal\n", "0\ta\t5\t5\ttotal\n", "1\ta\t5\t5\tphase: map\n") {
    $judged = judge($bad);
    is $judged->{status}, 2, 'wrong input has its own exit status: ' . ($bad =~ s/\s+/ /gr);
    like $judged->{err}, qr/^verdict: line \d+ of the input: \w/, 'and a sentence';
}

# ---- what is wrong is said

my $plain = "$repo/conf/series/02-plain.conf";
my $wrong = write_file('wrong.conf', "NoSuchDirective on\n");
my @bad   = (
    ['a file that is not there',       {}, ["$temp/none.conf", $plain, '/'], qr/there is no \S+none\.conf/],
    ['an URL without a slash',         {}, [$plain, $plain, 'index.html'], qr/does not begin with \//],
    ['too few arguments',              {}, [$plain], qr/three arguments are needed/],
    ['too few rounds',                 { ROUNDS => 2 }, [$plain, $plain, '/'], qr/ROUNDS=2 is out of range; 6 to 1000/],
    ['rounds that are no number',      { ROUNDS => 'x' }, [$plain, $plain, '/'], qr/ROUNDS=x is not a number/],
    ['an MPM that does not exist',     { MPM => 'x' }, [$plain, $plain, '/'], qr/the MPM x is unknown/],
    ['a fragment that httpd refuses',  {}, [$plain, $wrong, '/'], qr/httpd refuses \S+wrong\.conf.*NoSuchDirective/s],
    ['an URL that gives an error',     {}, [$plain, $plain, '/none'], qr/the server answers \/none with: 404/],
);
for my $case (@bad) {
    my ($what, $env, $arguments, $sentence) = @$case;
    my $refused = compare($env, @$arguments);
    isnt $refused->{status}, 0, "$what is refused";
    like $refused->{err}, $sentence, "$what: the message says so";
    is $refused->{out}, '', "$what: there is no verdict";
}
is_deeply [left_over()], [], 'nothing is left of refused comparisons';

# ---- real servers

my %short = (ROUNDS => 6, REQUESTS => 300, SEED => 7);
my $same  = compare(\%short, $plain, $plain, '/small.txt');
is $same->{status}, 0, 'a configuration can be compared with itself' or diag $same->{err};
like $same->{err}, qr/seed 7$/m, 'the seed is printed';
is scalar(() = $same->{err} =~ /^round \d+ of 6: total /mg), 6, 'each round has a line while it runs';
$rows = table($same->{out});
like $rows->{total}{verdict}, qr/^(?:inconclusive|no difference)$/, 'it is neither slower nor faster than itself'
    or diag $same->{out};
is_deeply certain($same->{out}), {}, 'nor is any part';

my $lines = write_file('lines.conf', join '', map { "SetEnvIf User-Agent \"robot.$_.x|spider.$_\" robot\n" } 1 .. 3000);
my $slow;
for my $rounds (10, 30) {    # on a noisy machine ten are not enough
    $slow = compare({ %short, ROUNDS => $rounds }, $plain, $lines, '/small.txt');
    last if (certain_spans($slow->{out}))[0];
}
is $slow->{status}, 0, 'two configurations can be compared' or diag $slow->{err};
$rows = table($slow->{out});
is $rows->{setenvif}{verdict}, 'slower', '3000 SetEnvIf lines make setenvif slower' or diag $slow->{out};
unlike $rows->{total}{verdict}, qr/faster|no difference/, 'the total does not deny it';
my $found  = certain($slow->{out});
my $size   = $found->{setenvif}[1] // 0;
my @others = grep { !/setenvif|^total$/ && $found->{$_}[1] > $size / 4 } sort keys %$found;
is_deeply \@others, [], 'no other part is charged with it' or diag $slow->{out};
is scalar certain_spans($slow->{out}), 1, 'the span that runs the lines is named' or diag $slow->{out};
my $sum = sum(map { $rows->{$_}{diff} } grep { $_ ne 'total' } keys %$rows);
cmp_ok abs($sum - $rows->{total}{diff}), '<', 0.02, 'the differences of the phases add up to the total\'s';

# ---- interrupted

my $pid = begin(\%short, "$repo/conf/compare.sh", $plain, $plain, '/small.txt');
RpTest->wait_for(sub { read_file('err') =~ /^round 1/m }, 20);
kill TERM => $pid;
is result($pid)->{status}, 130, 'a comparison can be interrupted';
is_deeply [left_over()], [], 'nothing is left running, and no file';

done_testing;
