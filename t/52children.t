# The children's table: what each has served, what memory and CPU time it has, and whether its memory grows.

use strict;
use warnings;
use List::Util qw(sum);
use Test::More;
use RpTest;

# glibc then has nothing to say of the heap.
my $malloc_is_replaced = $ENV{RP_VALGRIND} || $ENV{RP_LD_PRELOAD};

my %one_child = (mpm => 'prefork', mpm_conf => { StartServers => 1, MaxRequestWorkers => 1, ServerLimit => 1,
    MinSpareServers => 1 }, allow_log => qr/AH00161/);

sub status_of {
    my ($pid, $key) = @_;
    open my $status, '<', "/proc/$pid/status" or die "/proc/$pid/status: $!\n";
    return (map { /^$key:\s+(\d+)/ ? $1 * 1024 : () } <$status>)[0];
}

sub live { return grep { $_->{state} eq 'live' } @{ $_[0]{children} } }

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, modules => ['ruler'], status_vhost => 1);
    my $delta = $srv->delta(sub {
        $srv->ab(requests => 300, concurrency => 4);
        $srv->ab(requests => 300, concurrency => 4, keep_alive => 1);
        $srv->get('/none');
    });
    my $json = $delta->{after};
    my @live = live($json);
    is_deeply [sort { $a <=> $b } map { $_->{pid} } @live], [sort { $a <=> $b } $srv->children],
        "$mpm: all children are listed";
    is sum(map { $_->{requests} } @{ $json->{children} }), $json->{requests}{count},
        "$mpm: their requests add up to all requests";
    my $connections = sum(map { $_->{connections} } @{ $json->{children} });
    cmp_ok $connections, '>=', 301 + 3, "$mpm: each connection is counted";
    cmp_ok $connections, '<', 601, "$mpm: and requests kept alive share one";
    is sum(map { $_->{by_status}{'4xx'} } @live), 1, "$mpm: the statuses are those of the child";
    my ($busy) = grep { $_->{requests} > 0 } @live;
    my $rss = status_of($busy->{pid}, 'VmRSS');
    cmp_ok $busy->{rss_bytes}, '>', $rss / 2, "$mpm: resident memory is as the kernel has it";
    cmp_ok $busy->{rss_bytes}, '<', $rss * 2, "$mpm: within a factor of two";
    cmp_ok $busy->{private_bytes}, '>', 0, "$mpm: some of it is private";
    cmp_ok $busy->{private_bytes}, '<', $busy->{rss_bytes}, "$mpm: and some is shared";
    cmp_ok $busy->{heap_used_bytes}, '<=', $busy->{heap_held_bytes}, "$mpm: no more heap is used than held";
    cmp_ok $busy->{heap_used_bytes}, '>', 0, "$mpm: some is used" if !$malloc_is_replaced;
    $srv->done;
}

# CPU time that a request burns is in its child's row, once the child has spoken again.
{
    my $srv = RpTest->start(%one_child, modules => ['ruler'], status_vhost => 1);
    $srv->get('/small.txt', headers => { 'X-Ruler' => 'where=fixups;ms=400;how=burn' });
    my $burnt = $srv->wait_for(sub { $srv->get('/small.txt'); my ($child) = live($srv->json);
        return $child->{cpu_user_s} + $child->{cpu_system_s} >= 0.3 }, 5);
    ok $burnt, 'the CPU time of a child is what it has burnt';
    $srv->done;
}

# Serves for some seconds of samples; returns the only child's growth.
sub growth_after {
    my ($requests, $rule, $then) = @_;
    my $srv = RpTest->start(%one_child, status_vhost => 1, access_log => 0, modules => ['ruler'], conf => <<"END");
<Location "/leak">
    Ruler "$rule"
</Location>
<Location "/buffer">
    Ruler "where=handler;how=grow;bytes=52428800"
</Location>
END
    my $serve = sub { $srv->ab(requests => $_[0], concurrency => 1, keep_alive => 1, path => '/leak/small.txt') };
    $serve->($requests / 2);
    $srv->get('/buffer') if $then;
    $serve->($requests / 2);
    my $growth = $srv->wait_for(sub { my ($child) = live($srv->json);
        return $child->{growth}{word} ne 'unknown' && $child->{growth} || do { $serve->(2000); 0 } }, 30);
    my $text = $srv->text;
    $srv->done;
    return ($growth, $text);
}

# A busy machine can disturb one life of a child, not three.
sub growth_called {
    my ($word, @how) = @_;
    my ($growth, $text);
    for (1 .. 3) {
        ($growth, $text) = growth_after(@how);
        last if $growth->{word} eq $word;
    }
    return ($growth, $text);
}

SKIP: {
    skip 'valgrind or a sanitizer replaces malloc', 1 if $malloc_is_replaced;
    my ($leak, $text) = growth_after(100_000, 'where=handler;how=leak;bytes=400;return=204');
    is $leak->{word}, 'growing', 'a leak of 400 bytes a request is growing';
    cmp_ok $leak->{low},  '<=', 400, 'its interval covers 400';
    cmp_ok $leak->{high}, '>=', 400, 'from both sides' or diag explain $leak;
    cmp_ok $leak->{high} - $leak->{low}, '<', 100, 'and is less than 100 bytes wide';
    like $text, qr/^Finding: Memory grows with the requests: child \d+ by \d+ bytes a request/m,
        'and a sentence says so';

    my ($step) = growth_called('step', 100_000, 'where=fixups;us=0;return=204', 1);
    is $step->{word}, 'step', '50 MB that are buffered once are a step';
    cmp_ok $step->{step_bytes}, '>', 50_000_000, 'of that height' or diag explain $step;

    ($leak, $text) = growth_called('plateau', 100_000, 'where=handler;us=0;return=204');
    is $leak->{word}, 'plateau', 'without either it is a plateau' or diag explain $leak;
    unlike $text, qr/^Finding: Memory grows/m, 'and no sentence speaks of a leak';
}

done_testing;
