# Time spent in a hook's function is in that function's span, whichever of the request's hooks it is.

use strict;
use warnings;
use Test::More;
use RpTest;
use RpTest::Truth;

my $ms = 60;
my %login = (Authorization => 'Basic dTpzZWNyZXQ=');    # u:secret

# hook, phase, and a request that passes through it
my @hooks = (
    [post_read_request   => 'map',     '/small.txt'],
    [quick_handler       => 'handler', '/small.txt'],
    [pre_translate_name  => 'map',     '/small.txt'],
    [translate_name      => 'map',     '/small.txt'],
    [map_to_storage      => 'map',     '/small.txt'],
    [dirwalk_stat        => 'map',     '/small.txt'],
    [open_htaccess       => 'map',     '/override/index.html'],
    [post_perdir_config  => 'map',     '/small.txt'],
    [header_parser       => 'map',     '/small.txt'],
    [access_checker      => 'access',  '/small.txt'],
    [access_checker_ex   => 'access',  '/small.txt'],
    [force_authn         => 'auth',    '/small.txt'],
    [check_user_id       => 'auth',    '/private/index.html', headers => \%login],
    [auth_checker        => 'auth',    '/private/index.html', headers => \%login],
    [note_auth_failure   => 'auth',    '/refused/index.html', headers => \%login, status => 401],
    [type_checker        => 'fixup',   '/small.txt'],
    [fixups              => 'fixup',   '/small.txt'],
    [insert_filter       => 'handler', '/small.txt'],
    [insert_error_filter => 'handler', '/none.html', status => 404],
    [handler             => 'handler', '/small.txt'],
    [log_transaction     => 'log',     '/small.txt'],
);

my $conf = <<'END';
<Directory "@DOCROOT@/override">
    AllowOverride All
</Directory>
<Location "/private/">
    AuthType Basic
    AuthName "ruler"
    AuthBasicProvider ruler
    Require ruler user
</Location>
<Location "/refused/">
    AuthType Basic
    AuthName "ruler"
    AuthBasicProvider ruler
    Require ruler user denied
</Location>
END

my %files = map { ("$_/index.html" => "<html><body>$_</body></html>\n") } qw(override private refused);
my %common = (status_vhost => 1, modules => [qw(auth_basic authn_core authz_user ruler ruler2)], conf => $conf,
    files => \%files, allow_log => qr/AH01631: user u: authorization failure/);

sub ask {
    my ($srv, $rules, $path, %arg) = @_;
    my $status  = $arg{status} || 200;
    my $headers = { %{ $arg{headers} || {} }, %$rules };
    my $got     = $srv->get($path, headers => $headers)->{status};
    die "$path answered $got, not $status\n" if $got != $status;
}

my %listed = map { $_->[0] => 1 } @hooks;
my $def    = "$RpTest::Build::REPO/src/capture/hooks.def";
open my $list, '<', $def or die "$def: $!\n";
my @untested = grep { !$listed{$_} } map { /^RP_HOOK\((\w+),/ ? $1 : () } <$list>;
is_deeply \@untested, [qw(create_request pre_read_request)], 'each hook that can see a header is tested here';

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(mpm => $mpm, %common);
    for my $case (@hooks) {
        my ($hook, $phase, $path, %arg) = @$case;
        spent_in($srv, "$mpm, $hook", { phase => $phase, kind => 'hook', hook => $hook, owner => 'mod_ruler' }, $ms,
            sub { ask($srv, { 'X-Ruler' => "where=$hook;ms=$ms" }, $path, %arg) });
    }
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

# Two modules in one hook, and loaded before or after the profiler: each gets its own time.
for my $place (1, 'first') {
    my $srv  = RpTest->start(mpm => 'worker', %common, profiler => $place);
    my $when = $place eq 'first' ? 'loaded first' : 'loaded last';
    for my $case (grep { $_->[0] =~ /^(?:translate_name|fixups|log_transaction)$/ } @hooks) {
        my ($hook, $phase, $path) = @$case;
        my %second = (phase => $phase, kind => 'hook', hook => $hook, owner => 'mod_ruler2');
        my $rows = spent_in($srv, "$when, $hook", { %second, owner => 'mod_ruler' }, $ms,
            sub { ask($srv, { 'X-Ruler' => "where=$hook;ms=$ms", 'X-Ruler2' => "where=$hook;ms=20" }, $path) },
            allowed => [\%second]);
        cmp_ok grown_ns($rows, %second), '>=', 20e6, "$when, $hook: the second ruler has its own 20 ms";
    }
    $srv->sums_ok($srv->json, $when);
    $srv->done;
}

# Before the request line has come there is no request yet, so this time belongs to none.
for my $hook (qw(create_request pre_read_request)) {
    my $srv = RpTest->start(%common, conf => "Ruler \"where=$hook;ms=$ms\"\n");
    my @complaints = best_of(sub {
        my $delta = $srv->delta(sub { ask($srv, {}, '/small.txt') });
        my $total = $srv->total_ns($delta);
        return $srv->requests($delta) != 1 ? 'not counted' : $total > $ms * 5e5 ? "total $total ns" : ();
    });
    ok !@complaints, "$hook of the client's request is before its time" or diag @complaints;
    $srv->sums_ok($srv->json, $hook);
    $srv->done;
}

done_testing;
