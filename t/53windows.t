# Windows and the timeline: what ended in them, no more and no less, and over restarts.

use strict;
use warnings;
use List::Util qw(sum);
use Test::More;
use RpTest;

sub blocks { return @{ $_[0]{timeline}{blocks} } }

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, modules => ['ruler']);
    ok $srv->wait_for(sub { blocks($srv->json('window=1m')) }, 10), "$mpm: there is a block once a second has passed";
    $srv->ab(requests => 400, concurrency => 4);
    my ($epoch) = $srv->settle;
    my $all = sub { my ($json) = @_; return sum(0, map { $_->{requests} } blocks($json)) };
    my $hour = $srv->wait_for(sub { my $json = $srv->json('window=1h'); $all->($json) == 400 && $json }, 10);
    is $all->($hour), 400, "$mpm: the blocks have all requests";
    is $hour->{requests}{count}, 400, "$mpm: and so has a window that is longer than the server runs";
    is $hour->{total}{sum_ns}, $epoch->{total}{sum_ns}, "$mpm: with the same sum";
    $srv->sums_ok($hour, "$mpm, window=1h");
    cmp_ok abs(sum(map { $_->{total}{sum_ns} } blocks($hour)) - $epoch->{total}{sum_ns}), '<', 10_000,
        "$mpm: and the same time, but for rounding";
    my @big = grep { $_->{requests} } blocks($hour);
    cmp_ok $big[0]{total}{p50_ns}, '<=', $big[0]{total}{p99_ns}, "$mpm: a block's percentiles are in order";
    is sum(map { $_->{sum_ns} } values %{ $big[0]{phases} }) <= $big[0]{total}{sum_ns} * 1.001, 1,
        "$mpm: and its phases are no more than its total";

    # Once ten seconds and a fifth have passed since the burst, the shortest window has forgotten it.
    my $short = $srv->wait_for(sub { my $json = $srv->json('window=10s'); $json->{requests}{count} == 0 && $json }, 20)
        || $srv->json('window=10s');
    is $short->{requests}{count}, 0, "$mpm: ten seconds later the window of ten seconds is empty";
    is $short->{total}{sum_ns}, 0, "$mpm: and has no time";
    cmp_ok $short->{window}{seconds}, '>=', 10, "$mpm: it is at least as long as its name says";
    cmp_ok $short->{window}{seconds}, '<', 30, "$mpm: and not much longer";
    $srv->sums_ok($short, "$mpm, window=10s");
    is $srv->json('window=5m')->{requests}{count}, 400, "$mpm: a longer one still has it";

    # What is done now is the difference of two snapshots, in the short window and in the epoch.
    my $delta = $srv->delta(sub { $srv->get('/page.html') for 1 .. 7 });
    my $now = $srv->json('window=10s');
    is $now->{requests}{count}, $srv->requests($delta), "$mpm: a window has what two snapshots differ by";
    cmp_ok abs($now->{total}{sum_ns} - $srv->total_ns($delta)), '<', 1000, "$mpm: and its time, but for rounding";
    my %now = map { ("$_->{hook} $_->{owner} $_->{which} $_->{detail}" => $_->{calls}) } grep { exists $_->{detail} }
        @{ $now->{spans} };
    ok %now, "$mpm: its spans are listed";
    is $now{'translate_name core 0 '}, 7, "$mpm: with the window's calls" if exists $now{'translate_name core 0 '};
    my $bounds = $now->{total};
    ok $bounds->{min_ns} <= $bounds->{p}{50} && $bounds->{p}{50} <= $bounds->{p}{99}
        && $bounds->{p}{99} <= $bounds->{max_ns}, "$mpm: its percentiles are in order";

    my $before = $srv->json->{server}{epoch};
    $srv->graceful;
    $srv->get('/small.txt') for 1 .. 3;
    my @later = @{ $srv->wait_for(sub { my @b = blocks($srv->json('window=5m'));
        (grep { $_->{epoch} > $before && $_->{requests} } @b) && \@b }, 10) || [] };
    ok +(grep { $_->{epoch} == $before } @later), "$mpm: the timeline goes back behind a restart";
    is $srv->json('window=5m')->{requests}{count}, 3, "$mpm: a window does not: configurations are not mixed";
    $srv->done;
}

{
    my $srv = RpTest->start(status_vhost => 1);
    my $pid = ($srv->children)[0];
    my $answer = $srv->get("/reqprof-status?child=$pid&window=1m", port => $srv->status_port);
    is $answer->{status}, 400, 'a window of one child is refused';
    like $answer->{content}, qr/accepted is epoch/, 'with what is accepted';
    like $srv->get('/reqprof-status?window=1m', port => $srv->status_port)->{content},
        qr/class="here" href="\?window=1m"/,
        'the page marks its window';
    $srv->done;
}

done_testing;
