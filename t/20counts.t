# Every request is counted once: the report, the access log and the client agree, in each MPM.

use strict;
use warnings;
use Test::More;
use RpTest;
use RpTest::Report;

# Under valgrind a run of 1,000 requests is long enough to be waited for.
my $scale       = $ENV{RP_VALGRIND} ? 20 : 1;
my $concurrency = $ENV{RP_VALGRIND} ? 8 : 50;

# More workers than clients in each child, however the clients spread: an event child that is busy closes idle
# connections, which ab counts as answers.
my %threads = (ServerLimit => 2, StartServers => 2, ThreadsPerChild => 64, ThreadLimit => 64, MinSpareThreads => 1,
    MaxSpareThreads => 128, MaxRequestWorkers => 128);
my %mpm_conf = (
    prefork => { ServerLimit => 64, MaxRequestWorkers => 64, StartServers => $concurrency + 4, MinSpareServers => 1,
                 MaxSpareServers => 64 },
    worker  => \%threads,
    event   => \%threads,
);

sub sum {
    my $sum = Math::BigInt->new(0);
    $sum->badd($_) for @_;
    return $sum->bstr;
}

# Requests by status class, as the client saw them.
sub send_load {
    my ($srv) = @_;
    my $n     = 20_000 / $scale;
    my $ok    = $srv->ab(requests => $n, concurrency => $concurrency, keep_alive => 1, path => '/small.txt');
    my $moved = $srv->ab(requests => $n / 20, concurrency => 5, path => '/moved');
    my $none  = $srv->ab(requests => $n / 10, concurrency => 10, keep_alive => 1, path => '/none');
    my $h1    = $srv->h2load(requests => $n / 5, clients => 10, streams => 1, path => '/page.html', args => ['--h1']);
    is $ok->{failed}, 0, $srv->mpm . ': no request of the client failed';
    is $moved->{non_2xx}, $n / 20, $srv->mpm . ': each redirect was answered as one';
    return { '1xx' => 0, '2xx' => $ok->{complete} + $h1->{by_status}{'2xx'}, '3xx' => $moved->{non_2xx},
        '4xx' => $none->{non_2xx}, '5xx' => 0 };
}

sub logged_by_status {
    my ($srv) = @_;
    my %count = map { $_ . 'xx' => 0 } 1 .. 5;
    $count{ substr($_->{status}, 0, 1) . 'xx' }++ for grep { $_->{vhost} ne 'status.test' } $srv->access_log;
    return \%count;
}

sub check_counts {
    my ($srv, $json, $client) = @_;
    my $mpm   = $srv->mpm;
    my $count = $json->{requests}{count};
    is $count, sum(values %$client), "$mpm: the report counts what the client counted";
    is_deeply $json->{requests}{by_status}, $client, "$mpm: by status too";
    is_deeply $json->{requests}{by_status}, logged_by_status($srv), "$mpm: and the access log has as many";
    is $json->{total}{count}, $count, "$mpm: each has a total";
    is $json->{requests}{in_flight}, 0, "$mpm: none is left running";
    my $log = $srv->span($json, kind => 'log', target => qr/access\.log/);
    is $log->{written}, $count, "$mpm: each was written to the log once";
}

sub check_children {
    my ($srv, $json) = @_;
    my $mpm      = $srv->mpm;
    my @children = @{ $json->{children} };
    cmp_ok scalar(@children), '>', 1, "$mpm: there are several children";
    is sum(map { $_->{requests} } @children), $json->{requests}{count}, "$mpm: the children's requests are all of them";
    is sum(map { $_->{total}{sum_ns} } @children), $json->{total}{sum_ns}, "$mpm: and their times add up to the total";
    for my $class (sort keys %{ $json->{requests}{by_status} }) {
        is sum(map { $_->{by_status}{$class} } @children), $json->{requests}{by_status}{$class},
            "$mpm: the children's $class add up";
    }
    my %logged;
    $logged{ $_->{pid} }++ for grep { $_->{vhost} ne 'status.test' } $srv->access_log;
    is_deeply { map { $_->{requests} ? ($_->{pid} => $_->{requests}) : () } @children }, \%logged,
        "$mpm: each child has the requests that it logged";
}

for my $mpm (qw(prefork worker event)) {
    # Children that valgrind slows down end too late for their parent.
    my $srv = RpTest->start(mpm => $mpm, mpm_conf => $mpm_conf{$mpm}, status_vhost => 1,
        allow_log => $ENV{RP_VALGRIND} ? qr/AH00045|AH00046|AH00274/ : [], conf => <<'END');
Redirect /moved /small.txt
MaxKeepAliveRequests 0
END
    my $client = send_load($srv);
    my ($json) = $srv->settle;
    check_counts($srv, $json, $client);
    check_children($srv, $json);
    $srv->sums_ok($json, $mpm);
    is_deeply [grep { $json->{profiler}{dropped}{$_} } sort keys %{ $json->{profiler}{dropped} }], [],
        "$mpm: nothing was dropped";
    $srv->done;
}

done_testing;
