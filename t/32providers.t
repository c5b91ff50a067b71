# Time spent in a Require line, a password check, a log's write, and a handler.

use strict;
use warnings;
use Test::More;
use Time::HiRes qw(sleep);
use RpTest;
use RpTest::Fifo;
use RpTest::Truth;

my $ms = 60;
my %login = (Authorization => 'Basic dTpzZWNyZXQ=');    # u:secret
my $fifo  = RpTest::Fifo->new;
my $conf  = <<'END';
<Location "/made">
    SetHandler ruler-handler
</Location>
<Location "/open/">
    Require ruler
</Location>
<Location "/both/">
    <RequireAll>
        Require ruler ms=60
        Require ruler ms=6
    </RequireAll>
</Location>
<Location "/private/">
    AuthType Basic
    AuthName "ruler"
    AuthBasicProvider ruler2 ruler
    Require ruler user
</Location>
<Directory "@DOCROOT@/override">
    AllowOverride AuthConfig
</Directory>
END
$conf .= "LogFormat \"%{X-Long}i\" long\nCustomLog \"@{[$fifo->path]}\" long\n";

my %files = map { ("$_/index.html" => "<html><body>$_</body></html>\n") } qw(open both private override);
$files{'override/.htaccess'} = "Require ruler\n";

sub require_span { my ($phase, $owner) = @_; return { phase => $phase, kind => 'require', owner => $owner } }

sub ask {
    my ($srv, $path, $headers) = @_;
    my $status = $srv->get($path, headers => $headers)->{status};
    die "$path: $status\n" if $status != 200;
}

# A line longer than the pipe: its write waits until somebody reads.
sub write_to_stopped_reader {
    my ($srv, $pause_ms) = @_;
    $fifo->stop_reading;
    ask($srv, '/small.txt', { 'X-Long' => 'x' x 7000 });
    sleep $pause_ms / 1000;
    $fifo->resume;
}

# The client has its answer before the log is written, so the pause and the write begin at almost the same time.
sub log_waits {
    my ($srv, $mpm, $pause_ms) = @_;
    my %target = (phase => 'log', kind => 'log');
    my $rows;
    my @complaints = best_of(sub {
        $rows = growth($srv, $srv->delta(sub { write_to_stopped_reader($srv, $pause_ms) }));
        my $ns = grown_ns($rows, %target, target => $fifo->path);
        my @bad = grep { ($_->{target} // '') ne $fifo->path && $_->{ns} > $pause_ms * 1e5 } @$rows;
        return ($ns < $pause_ms * 7e5 ? "only $ns ns" : (), map { "$_->{phase} $_->{owner}: $_->{ns}" } @bad);
    });
    ok !@complaints, "$mpm: a log that nobody reads has the time its write waits, and nothing else has it"
        or diag join "\n", @complaints;
    is grown_ns($rows, %target, target => $srv->dir . '/access.log') > 0, 1, "$mpm: the other log has its own row";
}

for my $mpm (qw(prefork worker event)) {
    my $srv = RpTest->start(mpm => $mpm, status_vhost => 1, files => \%files, conf => $conf,
        modules => [qw(auth_basic authn_core authz_user ruler ruler2)]);

    spent_in($srv, "$mpm, Require without a user", require_span('access', 'ruler'), $ms,
        sub { ask($srv, '/open/index.html', { 'X-Ruler' => "where=require;ms=$ms" }) });

    my $rows = spent_in($srv, "$mpm, first of two Require lines", require_span('access', 'ruler ms=60'), $ms,
        sub { ask($srv, '/both/index.html', {}) }, allowed => [require_span('access', 'ruler ms=6')]);
    cmp_ok grown_ns($rows, owner => 'ruler ms=6'), '>=', 6e6, "$mpm: the second line has its own time";

    spent_in($srv, "$mpm, Require with a user", require_span('auth', 'ruler user'), $ms,
        sub { ask($srv, '/private/index.html', { %login, 'X-Ruler' => "where=require;ms=$ms" }) });

    spent_in($srv, "$mpm, Require in .htaccess", require_span('access', 'ruler'), $ms,
        sub { ask($srv, '/override/index.html', { 'X-Ruler' => "where=require;ms=$ms" }) });

    spent_in($srv, "$mpm, password", { phase => 'auth', kind => 'password', owner => 'ruler2' }, $ms,
        sub { ask($srv, '/private/index.html', { %login, 'X-Ruler2' => "where=password;ms=$ms" }) });

    spent_in($srv, "$mpm, handler sleeps", { phase => 'handler', hook => 'handler', owner => 'mod_ruler' }, $ms,
        sub { ask($srv, '/made', { 'X-Ruler' => "where=content;ms=$ms" }) });

    spent_in($srv, "$mpm, handler computes", { phase => 'handler', hook => 'handler', owner => 'mod_ruler' }, $ms,
        sub { ask($srv, '/made', { 'X-Ruler' => "where=content;ms=$ms;how=burn" }) });

    log_waits($srv, $mpm, 150);
    $srv->sums_ok($srv->json, $mpm);
    $srv->done;
}

done_testing;
