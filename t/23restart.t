# Children that come, go and die, restarts under load, and the directives.

use strict;
use warnings;
use Math::BigInt;
use Test::More;
use RpTest;

my %threads = (MaxRequestWorkers => 64, ServerLimit => 4, ThreadsPerChild => 16, MaxSpareThreads => 64,
    MinSpareThreads => 1);
my %mpm_conf = (
    prefork => { MaxRequestWorkers => 40, ServerLimit => 40, StartServers => 4, MaxSpareServers => 40 },
    worker  => \%threads,
    event   => \%threads,
);

# Under valgrind all takes twenty times as long.
my $restarts  = $ENV{RP_VALGRIND} ? 3 : 20;
my $many      = $ENV{RP_VALGRIND} ? 5 : 100;
my $requests  = $ENV{RP_VALGRIND} ? 200 : 2000;

sub start { return RpTest->start(status_vhost => 1, @_) }

sub sum {
    my $sum = Math::BigInt->new(0);
    $sum->badd($_) for @_;
    return $sum->bstr;
}

# wrk until it is killed.
sub start_load {
    my ($srv, $path) = @_;
    return $srv->background(sub {
        open STDOUT, '>', '/dev/null' or die "/dev/null: $!\n";
        exec 'wrk', '-d', '600s', '-t', 1, '-c', 8, $srv->url($path);
    });
}

sub logged { return scalar grep { $_->{vhost} ne 'status.test' } $_[0]->access_log }

# The report of a server whose children may be busy dying.
sub serves {
    my ($srv, $path) = @_;
    return $srv->wait_for(sub { $srv->get($path)->{status} == 200 }, 10);
}

sub wait_for_new_children {
    my ($srv, @old) = @_;
    my %old = map { $_ => 1 } @old;
    return $srv->wait_for(sub { my @now = $srv->children; @now && !grep { $old{$_} } @now }, 20);
}

for my $mpm (qw(prefork worker event)) {
    my $srv = start(mpm => $mpm, mpm_conf => $mpm_conf{$mpm}, crash => 1,
        allow_log => [qr/exit signal Killed/, qr/RP01[012]: /]);
    $srv->ab(requests => $requests, concurrency => 4, keep_alive => 1);
    my ($before) = $srv->settle;
    my @children = $srv->children;
    kill 'KILL', @children;
    ok wait_for_new_children($srv, @children), "$mpm: killed children are replaced";
    my ($after) = $srv->settle;
    is $after->{requests}{count}, $requests, "$mpm: their requests stay in the sums";
    my $grown = $after->{total}{sum_ns} - $before->{total}{sum_ns};
    my $spans = (@{ $before->{spans} } + 2) * @{ $before->{children} } * 8;
    # Ticks become whole nanoseconds for each span of a child: one sum of all the departed is cut less often.
    ok $grown >= 0 && $grown <= $spans, "$mpm: with their times, but for rounding" or diag "$grown ns in $spans sums";
    is_deeply $after->{requests}{by_status}, $before->{requests}{by_status}, "$mpm: by status too";
    my ($departed) = grep { !$_->{pid} } @{ $after->{children} };
    is $departed->{requests}, $requests, "$mpm: as those of the departed";
    $srv->sums_ok($after, "$mpm, with departed children");
    $srv->ab(requests => $requests, concurrency => 4);
    ($after) = $srv->settle;
    is $after->{requests}{count}, 2 * $requests, "$mpm: and new ones are added";
    is $after->{profiler}{dropped}{lost_flights}, 0, "$mpm: no request was lost, since none ran";

    my $load  = start_load($srv, '/page.html');
    my $alive = 0;
    for (1 .. 5) {
        my $seen = $srv->json->{requests}{count};
        $srv->wait_for(sub { $srv->json->{requests}{count} > $seen + 20 }, 10);
        my ($victim) = $srv->children;
        kill 'KILL', $victim;
        $alive += !!serves($srv, '/small.txt');
    }
    is $alive, 5, "$mpm: with children killed under load the server goes on serving";
    $load->kill;
    ($after) = $srv->settle;
    is sum(map { $_->{requests} } @{ $after->{children} }), $after->{requests}{count},
        "$mpm: the sum over children and the departed is the count";
    is $after->{profiler}{dropped}{unbalanced}, 0, "$mpm: and each request is in balance";
    cmp_ok logged($srv), '>=', $after->{requests}{count}, "$mpm: none was counted that was not logged";
    $srv->done("$mpm: nothing but the killings was logged");
}

for my $mpm (qw(prefork worker event)) {
    my $srv  = start(mpm => $mpm, mpm_conf => $mpm_conf{$mpm});
    my $load = start_load($srv, '/page.html');
    my (@epochs, $wrong);
    for my $number (1 .. $restarts) {
        $srv->graceful;
        # A child of the last epoch may still take a connection.
        $srv->wait_for(sub { $srv->json->{server}{epoch} != $number }, 10);
        my $json = $srv->json;
        push @epochs, $json->{server}{epoch};
        $wrong++ if $json->{requests}{count} != $json->{total}{count} || $json->{profiler}{dropped}{unbalanced};
    }
    is_deeply \@epochs, [2 .. $restarts + 1], "$mpm: each of $restarts graceful restarts under load is an epoch";
    ok !$wrong, "$mpm: whose answers are right from the start";
    my $seen = $srv->json->{requests}{count};
    ok $srv->wait_for(sub { $srv->json->{requests}{count} > $seen + 100 }, 10), "$mpm: the server goes on serving";
    $load->kill;
    my ($json) = $srv->settle;
    $srv->sums_ok($json, "$mpm, after restarts");
    is $json->{profiler}{dropped}{damaged_flights}, 0, "$mpm: no child died";
    $srv->done("$mpm: and nothing was logged");
}

# Memory that a reload of the module does not give back would run out: static thread storage after some ten times.
{
    my $srv = start();
    my $rss = sub {
        open my $file, '<', '/proc/' . $srv->pid . '/status' or die "status: $!\n";
        return (map { /^VmData:\s+(\d+)/ ? $1 : () } <$file>)[0];
    };
    $srv->graceful for 1 .. 10;
    my $before = $rss->();
    $srv->graceful for 11 .. $many;
    $srv->wait_for(sub { $srv->json->{server}{epoch} == $many + 1 }, 10);
    is $srv->json->{server}{epoch}, $many + 1, "$many graceful restarts in a row work";
    cmp_ok $rss->() - $before, '<', 16 * 1024, 'and the parent grows by less than 16 MiB with them';
    is $srv->get('/small.txt')->{status}, 200, 'it serves';
    my $epoch = $srv->json->{server}{epoch};
    $srv->restart for 1 .. 5;
    is $srv->json->{server}{epoch}, $epoch + 5, 'hard restarts work too';
    $srv->done;
}

for my $mpm (qw(prefork worker event)) {
    # httpd itself says when it has waited for its children for three seconds.
    my $srv = start(mpm => $mpm, modules => ['ruler'], allow_log => qr/AH00045/);
    my @waiting = map {
        $srv->background(sub { $srv->get('/', headers => { 'X-Ruler' => 'where=fixups;ms=2500' })->{status} })
    } 1 .. 3;
    $srv->wait_for(sub { $srv->json->{requests}{in_flight} == 3 }, 5);
    is $srv->json->{requests}{in_flight}, 3, "$mpm: three requests are running";
    ok $srv->stop, "$mpm: SIGTERM in the middle of requests ends the server";
    $_->kill for @waiting;
    $srv->done;
}

for my $mpm (qw(prefork event)) {
    my %conf = %{ $mpm_conf{$mpm} };
    my $srv  = start(mpm => $mpm, mpm_conf => { %conf, MaxConnectionsPerChild => 50 });
    my $sent = $requests / 4;
    my $got  = $srv->ab(requests => $sent, concurrency => 8);
    is $got->{failed}, 0, "$mpm: children that end after 50 connections fail no request";
    my ($json) = $srv->settle;
    is $json->{requests}{count}, $got->{complete}, "$mpm: and all requests are counted";
    is logged($srv), $got->{complete}, "$mpm: as they are in the log";
    my %pids = map { $_->{pid} => 1 } grep { $_->{vhost} ne 'status.test' } $srv->access_log;
    cmp_ok scalar(keys %pids), '>', $sent / 100, "$mpm: by many children";
    is $json->{profiler}{dropped}{lost_flights}, 0, "$mpm: none was lost";
    $srv->sums_ok($json, "$mpm, with children that come and go");
    $srv->done;
}

# ---- directives ----

{
    my $srv = RpTest->start(conf => "ReqProf Off\n");
    is $srv->get('/small.txt')->{status}, 200, 'with ReqProf Off the server serves';
    my $res = $srv->get('/reqprof-status?format=json');
    is $res->{status}, 503, 'the page says that nothing is measured';
    like $res->{content}, qr/ReqProf/, 'and names the directive';
    $srv->change_conf("ReqProf On\n");
    $srv->graceful;
    ok $srv->wait_for(sub { $srv->get('/reqprof-status?format=json')->{status} == 200 }, 10),
        'after a restart with On there is a report';
    $srv->done;
}

{
    my $srv = start(ports => 2, conf => <<'END');
<VirtualHost 127.0.0.1:@PORT1@>
    ReqProf Off
</VirtualHost>
<VirtualHost 127.0.0.1:@PORT2@>
    ReqProf On
</VirtualHost>
END
    my ($off, $on) = $srv->ports;
    my $delta = $srv->delta(sub { $srv->get('/small.txt', port => $off) for 1 .. 5 });
    is $srv->requests($delta), 0, 'a virtual host with ReqProf Off is not measured';
    $delta = $srv->delta(sub { $srv->get('/small.txt', port => $on) for 1 .. 7 });
    is $srv->requests($delta), 7, 'one with On is';
    $delta = $srv->delta(sub { $srv->get('/small.txt') for 1 .. 3 });
    is $srv->requests($delta), 3, 'and so is the server around them';
    $srv->done;
}

{
    my $srv = start(modules => [qw(setenvif deflate)], conf => "ReqProfDetail phases\nSetOutputFilter DEFLATE\n");
    $srv->get('/page.html', headers => { 'Accept-Encoding' => 'gzip' }) for 1 .. 20;
    my ($json) = $srv->settle;
    is $json->{requests}{count}, 20, 'with ReqProfDetail phases requests are counted';
    $srv->sums_ok($json, 'ReqProfDetail phases');
    my %spans;
    $spans{ $_->{phase} }++ for grep { $_->{kind} ne 'log' && $_->{hook} ne 'read' } @{ $json->{spans} };
    is_deeply [grep { $spans{$_} > 1 } sort keys %spans], [], 'a phase is one span';
    is $srv->phase($json, 'deflate')->{self}{count}, 20, 'and phases are told apart';
    $srv->done;
}

{
    my $srv = start(conf => "ReqProfClock monotonic\n");
    my $res = $srv->get('/small.txt');
    my ($json) = $srv->settle;
    is $json->{profiler}{clock}, 'monotonic', 'ReqProfClock monotonic is used';
    cmp_ok $json->{total}{sum_ns}, '>=', $srv->access_entry($res)->{us} * 1000, 'and measures as the log does';
    $srv->change_conf("ReqProfClock auto\n");
    $srv->graceful;
    $srv->get('/small.txt');
    ($json) = $srv->settle;
    like $json->{profiler}{clock}, qr/^(tsc|monotonic)$/, 'auto chooses one of the clocks after a restart';
    cmp_ok $json->{total}{min_ns}, '<', 1_000_000_000, 'and measures in its ticks';
    $srv->done;
}

my @bad = (
    ['ReqProf',         'Maybe',      qr/On or Off/],
    ['ReqProfDetail',   'everything', qr/"everything".*phases.*spans/],
    ['ReqProfClock',    'sundial',    qr/"sundial".*auto.*tsc.*monotonic/],
    ['ReqProfMaxSpans', '7',          qr/"7".*32 to \d+/],
    ['ReqProfMaxSpans', '12cats',     qr/"12cats".*32 to \d+/],
    ['ReqProfMaxSpans', '-64',        qr/"-64".*32 to \d+/],
    ['ReqProfMaxSpans', '99999999999999999999', qr/"9+".*32 to \d+/],
);
for my $case (@bad) {
    my ($directive, $value, $accepted) = @$case;
    my ($good, $output) = RpTest->configtest(conf => "$directive $value\n");
    ok !$good, "$directive $value stops the start";
    like $output, qr/$directive/, "$directive $value: the message names the directive";
    like $output, $accepted, "$directive $value: and says what is accepted";
}
for my $directive ('ReqProf Off', 'ReqProfDetail spans', 'ReqProfClock auto', 'ReqProfMaxSpans 64') {
    my ($good, $output) = RpTest->configtest(conf => "$directive\n");
    ok $good, "$directive is accepted" or diag $output;
}

done_testing;
