# Every answer adds up to the nanosecond, also while requests are being counted.

use strict;
use warnings;
use Math::BigInt;
use Test::More;
use RpTest;
use RpTest::Report;

my $answers = $ENV{RP_VALGRIND} ? 10 : 40;

my $conf = <<'END';
SetEnvIf User-Agent "wrk" tool
SetOutputFilter DEFLATE
<Location "/guarded">
    SetEnvIf Remote_Addr "^127\." local
    Require env local
    Require ip 192.0.2.0/24
</Location>
Alias /guarded "@DOCROOT@"
ErrorDocument 404 /small.txt
END

# Requests of several kinds, in turn.
my $script = <<'END';
local paths = {"/small.txt", "/page.html", "/guarded/page.html", "/none", "/ssi.shtml"}
local turn = 0
request = function()
    turn = turn + 1
    return wrk.format("GET", paths[turn % #paths + 1])
end
END

sub sum {
    my $sum = Math::BigInt->new(0);
    $sum->badd($_) for @_;
    return $sum;
}

# What does not add up in one answer, as sentences.
sub faults {
    my ($json) = @_;
    my $total    = $json->{total}{sum_ns};
    my ($other)  = grep { $_->{phase} eq 'other' } @{ $json->{phases} };
    my %sum = (
        phases   => sum(map { $_->{self}{sum_ns} } @{ $json->{phases} }),
        spans    => sum($other->{self}{sum_ns}, map { $_->{self}{sum_ns} } grep { $_->{phase} ne 'other' }
                @{ $json->{spans} }),
        children => sum(map { $_->{total}{sum_ns} } @{ $json->{children} }),
    );
    my @faults = map { $sum{$_} == $total ? () : "$_ $sum{$_}, total $total" } sort keys %sum;
    my $counted = sum(values %{ $json->{requests}{by_status} });
    push @faults, "by_status $counted, count $json->{requests}{count}" if $counted != $json->{requests}{count};
    push @faults, "total of $json->{total}{count}, $json->{requests}{count} requests"
        if $json->{total}{count} != $json->{requests}{count};
    push @faults, "$json->{profiler}{dropped}{unbalanced} unbalanced" if $json->{profiler}{dropped}{unbalanced};
    return @faults;
}

# Reads many answers, of all children and of one, while the load goes on. Returns all that was wrong with them.
sub read_under_load {
    my ($srv) = @_;
    my ($last, $moved, @faults) = (0, 0);
    for my $number (1 .. $answers) {
        my $json = $srv->json;
        push @faults, map { "answer $number: $_" } faults($json);
        push @faults, "answer $number: count fell from $last to $json->{requests}{count}"
            if $json->{requests}{count} < $last;
        $moved++ if $json->{requests}{count} > $last;
        $last = $json->{requests}{count};
        my ($child) = grep { $_->{pid} } @{ $json->{children} };
        push @faults, map { "answer $number, child: $_" } faults($srv->json("child=$child->{pid}"));
    }
    return ($moved, @faults);
}

# wrk until it is killed.
sub start_load {
    my ($srv) = @_;
    return $srv->background(sub {
        open STDOUT, '>', '/dev/null' or die "/dev/null: $!\n";
        exec 'wrk', '-d', '600s', '-t', 2, '-c', 12, '-s', $srv->dir . '/mix.lua', $srv->url;
    });
}

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, modules => [qw(setenvif deflate authz_host)], ssi => 1, status_vhost => 1,
        mpm_conf => $mpm eq 'prefork' ? { MaxRequestWorkers => 24, ServerLimit => 24, MaxSpareServers => 24 }
            : { MaxRequestWorkers => 32, ThreadsPerChild => 16 },
        conf => $conf, files => { '../mix.lua' => $script });
    my $load = start_load($srv);
    $srv->wait_for(sub { $srv->json->{requests}{count} > 50 }, 10) or die "no load\n";
    my ($moved, @faults) = read_under_load($srv);
    $load->kill;
    is join("\n", @faults), '', "$mpm: in each of $answers answers under load all sums agree";
    cmp_ok $moved, '>', $answers / 2, "$mpm: the load went on meanwhile";
    my ($json) = $srv->settle;
    $srv->sums_ok($json, "$mpm, afterwards");
    cmp_ok scalar($srv->spans($json, kind => 'require')), '>=', 2, "$mpm: lines of Require were among the spans";
    cmp_ok $srv->phase($json, 'deflate')->{self}{count}, '>', 0, "$mpm: and compression";
    is $json->{profiler}{dropped}{unbalanced}, 0, "$mpm: no request was out of balance";
    $srv->done;
}

done_testing;
