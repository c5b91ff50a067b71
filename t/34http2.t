# HTTP/2: each stream is a request of its own, on threads of mod_http2.

use strict;
use warnings;
use Test::More;
use RpTest;
use RpTest::Truth;

my $ms = 60;
my $conf = <<'END';
AddOutputFilterByType DEFLATE text/html
<Location "/made">
    SetHandler ruler-handler
</Location>
<Location "/private/">
    AuthType Basic
    AuthName "ruler"
    AuthBasicProvider ruler
    Require ruler user
</Location>
END

sub curl {
    my ($srv, @arg) = @_;
    my @command = ('curl', '-sS', '--compressed', '-o', '/dev/null', '-w', '%{http_code} %{http_version}\n', @arg);
    open my $pipe, '-|', @command or die "curl: $!\n";
    my @answers = <$pipe>;
    close $pipe;
    chomp @answers;
    return join ', ', @answers;
}

sub h2 {
    my ($srv, $tls, $path, $rule, @more) = @_;
    my @how = $tls ? ('--http2', '--cacert', $srv->dir . '/tls.crt') : ('--http2-prior-knowledge');
    my $base   = $tls ? 'https://localhost:' . $srv->tls_port : $srv->url('');
    my $answer = curl($srv, @how, '-H', "X-Ruler: $rule", @more, "$base$path");
    die "$path: $answer\n" if $answer ne '200 2';
}

sub hook { my ($phase, $hook) = @_; return { phase => $phase, kind => 'hook', hook => $hook, owner => 'mod_ruler' } }
sub filter { my ($owner) = @_; return { phase => 'filter', kind => 'filter', hook => 'output', owner => $owner } }

my @cases = (
    ['post_read_request', hook('map', 'post_read_request'), '/page.html'],
    ['fixups',            hook('fixup', 'fixups'),          '/page.html'],
    ['handler',           hook('handler', 'handler'),       '/page.html'],
    ['content',           hook('handler', 'handler'),       '/made'],
    ['before',            filter('RULER_BEFORE'),           '/page.html'],
    ['after',             filter('RULER_AFTER'),            '/page.html'],
    ['log_transaction',   hook('log', 'log_transaction'),   '/page.html'],
    ['password', { phase => 'auth', kind => 'password', owner => 'ruler' }, '/private/index.html', '-u', 'u:secret'],
    ['in', { phase => 'filter', kind => 'filter', hook => 'input', owner => 'RULER_IN' }, '/made', '-d', 'x=y'],
);

# mod_http2 does not work with prefork.
for my $mpm (qw(event worker)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, http2 => 1, tls => 1, conf => $conf,
        modules => [qw(filter deflate auth_basic authn_core authz_user ruler)],
        files => { 'private/index.html' => "private\n" });

    for my $tls (0, 1) {
        my $proto = $tls ? 'h2' : 'h2c';
        for my $case ($mpm eq 'event' ? @cases : @cases[1, 3, 5]) {
            my ($where, $span, $path, @more) = @$case;
            spent_in($srv, "$mpm, $proto, $where", $span, $ms,
                sub { h2($srv, $tls, $path, "where=$where;ms=$ms", @more) });
        }
    }

    # Many streams at once, each of which waits: they overlap, and each has its own time.
    my $delta = $srv->delta(sub { $srv->h2load(requests => 60, clients => 3, streams => 10, path => '/made',
        args => ['-H', 'x-ruler: where=content;ms=5']) });
    is $delta->{result}{by_status}{'2xx'}, 60, "$mpm: 60 streams are answered";
    is $srv->requests($delta), 60, "$mpm: and counted";
    cmp_ok $srv->span_ns($delta, hook => 'handler', owner => 'mod_ruler'), '>=', 60 * 5e6,
        "$mpm: and each has waited";
    is $srv->span_count($delta, kind => 'log'), 60, "$mpm: and logged";
    $delta = $srv->delta(sub { $srv->h2load(requests => 400, clients => 4, streams => 20, path => '/page.html',
        tls => 1) });
    is $srv->requests($delta), 400, "$mpm: 400 streams over TLS are counted";
    cmp_ok $srv->phase_ns($delta, 'network'), '>', 0, "$mpm: with time on the network";
    $srv->sums_ok($srv->json, $mpm);
    is $srv->json->{requests}{in_flight}, 0, "$mpm: nothing is left in flight";
    $srv->done;
}

done_testing;
