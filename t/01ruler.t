# The ruler spends the time it was told to, at each place; the profiler's tests rely on it.

use strict;
use warnings;
use Test::More;
use RpTest;

my $wanted_ms = 12;
my $wanted_us = $wanted_ms * 1000;

# Where each place is reached: path, and what the request needs for it.
my %login = ('Authorization' => 'Basic ' . 'dTpzZWNyZXQ=');    # u:secret
my @places = (
    (map { [$_, '/small.txt'] } qw(post_read_request quick_handler pre_translate_name translate_name map_to_storage
        dirwalk_stat post_perdir_config header_parser access_checker access_checker_ex force_authn type_checker fixups
        insert_filter handler log_transaction before conn)),
    [open_htaccess       => '/override/index.html'],
    [check_user_id       => '/private/', headers => {%login}],
    [auth_checker        => '/private/', headers => {%login}],
    [password            => '/private/', headers => {%login}],
    [require             => '/private/', headers => {%login}],
    [note_auth_failure   => '/refused/', headers => {%login}, status => 401],
    [insert_error_filter => '/none',     status  => 404],
    [after               => '/page.html', headers => { 'Accept-Encoding' => 'gzip' }],
    [in                  => '/made', method => 'POST', content => 'x' x 100],
    [content             => '/made'],
);

my $conf = <<'END';
AddOutputFilterByType DEFLATE text/html
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
<Location "/made">
    SetHandler ruler-handler
</Location>
<Location "/configured/">
    Ruler "where=fixups;ms=12"
    Ruler2 "where=fixups;ms=7"
</Location>
<VirtualHost *:@PORT@>
    ServerName localhost
</VirtualHost>
END

my @modules = qw(filter deflate auth_basic authn_core authz_user env ruler ruler2);
my %files = map { ("$_/index.html" => "<html><body>$_</body></html>\n") } qw(override private configured);

# One request with a rule; returns its access-log entry after the two tests that hold for every place.
sub measured {
    my ($srv, $what, $rule, $path, %arg) = @_;
    my $status = delete $arg{status} || 200;
    my %headers = (%{ delete $arg{headers} || {} }, $rule ? ('X-Ruler' => $rule) : ());
    my $res = $srv->get($path, headers => \%headers, %arg);
    is $res->{status}, $status, "$what: the request is answered";
    my $entry = $srv->access_entry($res);
    cmp_ok $entry->{us}, '>=', $entry->{ruler_us} eq '-' ? 0 : $entry->{ruler_us}, "$what: %D holds the ruler's time";
    return $entry;
}

for my $mpm (qw(prefork event)) {
    my $srv = RpTest->start(profiler => 0, mpm => $mpm, modules => \@modules, ssi => 1, conf => $conf,
        files => \%files);

    for my $place (@places) {
        my ($where, $path, %arg) = @$place;
        for my $how (qw(sleep burn)) {
            my $entry = measured($srv, "$mpm, $where, $how", "where=$where;ms=$wanted_ms;how=$how", $path, %arg);
            cmp_ok $entry->{ruler_us}, '>=', $wanted_us, "$mpm, $where, $how: at least what was asked for";
        }
    }

    my $entry = measured($srv, "$mpm, no rule", undef, '/small.txt');
    is $entry->{ruler_us}, '-', "$mpm: without a rule no time is spent";
    $entry = measured($srv, "$mpm, two rules", 'where=fixups;ms=5, where=handler;ms=6', '/small.txt');
    cmp_ok $entry->{ruler_us}, '>=', 11_000, "$mpm: two rules add up";
    $entry = measured($srv, "$mpm, configuration", undef, '/configured/index.html');
    cmp_ok $entry->{ruler_us},  '>=', 12_000, "$mpm: the configuration holds rules, too";
    cmp_ok $entry->{ruler2_us}, '>=', 7_000,  "$mpm: and the second ruler has its own";
    $entry = measured($srv, "$mpm, each call", 'where=content;bytes=24000;ms=5;calls=0', '/made');
    cmp_ok $entry->{ruler_us}, '>=', 15_000, "$mpm: calls=0 spends each time";
    is $entry->{bytes}, 24_000, "$mpm: the handler answers as many bytes as asked";
    $entry = measured($srv, "$mpm, subrequest", 'where=handler;ms=12;uri=/part', '/ssi.shtml');
    cmp_ok $entry->{ruler_us}, '>=', $wanted_us, "$mpm: a rule can be for the subrequest";
    $entry = measured($srv, "$mpm, other URI", 'where=handler;ms=12;uri=/none', '/ssi.shtml');
    is $entry->{ruler_us}, '-', "$mpm: a rule for another URI does nothing";
    $entry = measured($srv, "$mpm, redirect", 'where=fixups;ms=12;uri=/override/index', '/override/');
    cmp_ok $entry->{ruler_us}, '>=', $wanted_us, "$mpm: a rule can be for the index page";
    measured($srv, "$mpm, return", 'where=fixups;return=403', '/small.txt', status => 403);
    is $srv->get('/private/', headers => { Authorization => 'Basic dTp3cm9uZw==' })->{status}, 401,
        "$mpm: a wrong password is refused";

    $srv->expect_log(qr/AH01617: user u: authentication failure/, qr/AH01631: user u: authorization failure/);
    $srv->done;
}

# DEFLATE stands between the two content filters: what comes to RULER_AFTER is compressed.
{
    my $srv = RpTest->start(profiler => 0, modules => \@modules, conf => $conf, mpm => 'event');
    my $res = $srv->get('/page.html', headers => { 'Accept-Encoding' => 'gzip',
        'X-Ruler' => 'where=before;ms=1, where=after;ms=1' });
    my $entry = $srv->access_entry($res);
    is $res->{headers}{'content-encoding'}, 'gzip', 'a page is compressed';
    is $entry->{before_bytes}, -s $srv->docroot . '/page.html', 'RULER_BEFORE sees it as it is';
    is $entry->{after_bytes}, length $res->{content}, 'RULER_AFTER sees it compressed';
    $srv->done;
}

# These run before a header is read, so the configuration asks for them, and %D has not begun yet.
for my $where (qw(create_request pre_read_request)) {
    my $srv = RpTest->start(profiler => 0, modules => ['ruler'], conf => "Ruler \"where=$where;ms=$wanted_ms\"\n");
    my $entry = $srv->access_entry($srv->get('/small.txt'));
    cmp_ok $entry->{ruler_us}, '>=', $wanted_us, "$where: at least what was asked for";
    $srv->done;
}

# Memory and crashes.
sub resident_bytes {
    my ($pid) = @_;
    open my $status, '<', "/proc/$pid/status" or die "/proc/$pid/status: $!\n";
    my ($kib) = map { /^VmRSS:\s+(\d+)/ } <$status>;
    return $kib * 1024;
}

{
    my $srv = RpTest->start(profiler => 0, mpm => 'prefork', modules => ['ruler'],
        mpm_conf => { StartServers => 1, MaxRequestWorkers => 1, ServerLimit => 1 }, allow_log => qr/AH00161/);
    my $mib = 1024 * 1024;
    my $bytes = sub { $srv->get('/small.txt', headers => { 'X-Ruler' => "where=fixups;$_[0]" }) for 1 .. 4;
        return resident_bytes(($srv->children)[0]) };
    my $start = $bytes->('ms=0');
    my $grown = $bytes->("how=grow;bytes=@{[8 * $mib]}");
    cmp_ok $grown - $start, '>=', 7 * $mib, 'how=grow takes memory';
    cmp_ok $grown - $start, '<', 16 * $mib, 'once a process';
    cmp_ok $bytes->("how=leak;bytes=@{[4 * $mib]}") - $grown, '>=', 15 * $mib, 'how=leak takes it for each request';
    $srv->done;
}

{
    my $srv = RpTest->start(profiler => 0, mpm => 'event', modules => ['ruler'], crash => 1,
        expect_log => qr/exit signal Segmentation fault/);
    $srv->get('/small.txt', headers => { 'X-Ruler' => 'where=handler;how=segv' });
    ok $srv->wait_for(sub { grep { /exit signal/ } $srv->error_log }), 'how=segv crashes a child';
    is $srv->get('/small.txt')->{status}, 200, 'and the server goes on';
    $srv->done;
}

is((RpTest->configtest(profiler => 0, modules => ['ruler'], conf => "Ruler where=fixups;how=never\n"))[0], 0,
    'a bad rule in the configuration stops the start');

done_testing;
