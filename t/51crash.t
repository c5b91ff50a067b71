# When a child dies, the error log and the report say where each of its requests stood, and how many were lost.

use strict;
use warnings;
use Test::More;
use RpTest;

my $conf = <<'END';
AddOutputFilterByType DEFLATE text/html
<VirtualHost *:@PORT@>
    ServerName www.test
</VirtualHost>
END

# place, span, phase, path
my @places = (
    [translate_name  => 'translate_name mod_ruler',  'map',     '/small.txt'],
    [access_checker  => 'access_checker mod_ruler',  'access',  '/small.txt'],
    [fixups          => 'fixups mod_ruler',          'fixup',   '/page.html'],
    [before          => 'output RULER_BEFORE',       'filter',  '/page.html'],
    [handler         => 'handler mod_ruler',         'handler', '/small.txt'],
    [log_transaction => 'log_transaction mod_ruler', 'log',     '/small.txt'],
);

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, crash => 1, modules => [qw(filter deflate ruler)],
        conf => $conf, allow_log => [qr/exit signal/, qr/RP010/]);
    my $lost = 0;
    for my $place (@places) {
        my ($where, $span, $phase, $path) = @$place;
        $srv->raw("GET $path?secret=1 HTTP/1.1\r\nHost: www.test\r\nX-Ruler: where=$where;how=segv\r\n\r\n");
        $lost++;
        my $json = $srv->wait_for(sub { my $json = $srv->json; $json->{requests}{lost} == $lost && $json }, 10)
            || $srv->json;
        is $json->{requests}{lost}, $lost, "$mpm, $where: the request is counted as lost";
        my $death = $json->{deaths}[0];
        is $death->{span},  $span,      "$mpm, $where: the report names the span";
        is $death->{phase}, $phase,     "$mpm, $where: and its phase";
        is $death->{uri},   $path,      "$mpm, $where: and the path";
        is $death->{vhost}, 'www.test', "$mpm, $where: and the virtual host";
        my ($line) = grep { /RP010: child $death->{pid} died/ } $srv->error_log;
        like $line, qr/in \Q$span\E \(phase $phase\): GET \Q$path\E of www\.test, begun \d+ ms ago/,
            "$mpm, $where: so does the error log";
        unlike $line, qr/secret/, "$mpm, $where: without the query string";
    }
    is scalar @{ $srv->json->{deaths} }, $lost, "$mpm: nothing else died";
    like $srv->text, qr/^LostRequests: $lost$/m, "$mpm: the text says how many were lost";
    like $srv->get('/reqprof-status', port => $srv->status_port)->{content}, qr/Children that died.*RULER_BEFORE/s,
        "$mpm: the page lists them";
    $srv->sums_ok($srv->json, $mpm);
    is $srv->json->{profiler}{dropped}{damaged_flights}, 0, "$mpm: none of them died in the middle of counting";

    $srv->graceful;
    is scalar @{ $srv->json->{deaths} }, $lost, "$mpm: the list outlives a restart";
    is $srv->json->{requests}{lost}, 0, "$mpm: the new configuration has lost none";
    $srv->done;
}

# An idle child that is killed had nothing to lose.
{
    my $srv = RpTest->start(mpm => 'prefork', status_vhost => 1, crash => 1,
        allow_log => [qr/exit signal/], expect_log => qr/RP011: child \d+ died while it served no request/);
    my ($pid) = $srv->children;
    ok $srv->wait_for(sub { grep { $_->{pid} == $pid } @{ $srv->json->{children} } }, 10), 'a child that is ready';
    kill 'KILL', $pid;
    ok $srv->wait_for(sub { grep { /RP011: child $pid / } $srv->error_log }, 10), 'a killed idle child is noticed';
    is $srv->json->{requests}{lost}, 0, 'and it lost no request';
    is $srv->json->{deaths}[0]{lost}, 0, 'its entry says so';
    $srv->done;
}

# Killing children under load loses at most what they were serving, and what was lost is said.
for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, crash => 1, modules => ['ruler'], log_level => 'warn',
        conf => qq{Ruler "where=handler;ms=2"\n}, allow_log => [qr/exit signal/, qr/RP01[012]/]);
    my $load = $srv->background(sub {
        my $ab = $srv->ab(requests => 3000, concurrency => 6, args => ['-r']);
        return "$ab->{complete} $ab->{failed}";
    });
    for my $round (1 .. 5) {
        $srv->wait_for(sub { $srv->json->{requests}{count} > 300 * $round }, 20);
        my ($victim) = $srv->children;
        kill 'KILL', $victim;
        $srv->wait_for(sub { grep { /RP01[01]: child $victim / } $srv->error_log }, 10);
    }
    my ($complete, $failed) = split / /, $load->wait;
    my ($json) = $srv->settle;
    my $lost    = $json->{requests}{lost};
    my $counted = $json->{requests}{count};
    cmp_ok $counted + $lost, '<=', 3000, "$mpm: no request is counted twice";
    cmp_ok $counted + $lost, '>=', 3000 - $failed - 5, "$mpm: and every one that was begun is counted or lost"
        or diag "$counted counted, $lost lost, $failed failed at the client";
    cmp_ok $lost, '<=', 5 * 8, "$mpm: no more are lost than could be running";
    $srv->sums_ok($json, "$mpm, after the kills");
    $srv->done;
}

done_testing;
