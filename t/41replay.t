# Replaying SetEnvIf, Allow and Deny lines tells which of them costs what, and leaves no trace.

use strict;
use warnings;
use Test::More;
use List::Util qw(sum0 max);
use RpTest;
use RpTest::Build;

my @modules = qw(setenvif access_compat headers env);
my $generate = "$RpTest::Build::REPO/conf/generate.pl";

sub list { my (@args) = @_; my $text = `perl $generate @args`; die "generate.pl @args\n" if $?; return $text }

sub lines {
    my ($json, %wanted) = @_;
    return grep { my $row = $_; !grep { $row->{$_} !~ $wanted{$_} } keys %wanted } @{ $json->{lines} };
}

sub sum_ns { return sum0(map { $_->{sum_ns} } @_) }

# Robust against what else the machine does.
sub median { my @sorted = sort { $a <=> $b } @_; return $sorted[ @sorted / 2 ] // 0 }

# Asks until every line that is waited for has been replayed often enough to be told.
sub load_until {
    my ($srv, $done, $path, %headers) = @_;
    my $json;
    for my $round (1 .. 40) {
        $srv->ab(requests => 2000, concurrency => 2, path => $path, keep_alive => 1, headers => \%headers);
        $json = $srv->json;
        last if $done->($json);
    }
    return $json;
}

# The equation of every module: its lines and what no line accounts for make up its live time.
sub adds_up {
    my ($json, $name) = @_;
    for my $module (@{ $json->{lines_not_attributed} }) {
        my $live = RpTest::Report::add_up('sum_ns',
            RpTest::Report::spans(undef, $json, kind => 'hook', owner => $module->{owner}, hook => $module->{hook}));
        is $module->{live_ns}, "$live", "$name: $module->{owner} in $module->{hook} has the live time of its span";
        is $module->{attributed_ns} + $module->{not_attributed_ns}, $module->{live_ns},
            "$name: and shares out all of it";
    }
    my $attributed = sum0(map { $_->{attributed_ns} } @{ $json->{lines_not_attributed} });
    is sum_ns(lines($json, source => qr/replay/)), $attributed, "$name: the lines add up to what is attributed";
}

# 500 lines with escaped dots, 500 with bare ones, 500 Deny lines.
{
    my %file = ('escaped.conf' => list(qw(lines --of=addresses --shape=escaped --count=500 --env=escaped)),
        'bare.conf' => list(qw(lines --of=addresses --shape=bare --count=500 --from=500 --env=bare)),
        'deny.conf' => "Order Allow,Deny\nAllow from all\n" . list(qw(deny --count=500)));
    my $srv = RpTest->start(modules => \@modules, status_vhost => 1, files => \%file, conf => <<'END');
ReqProfLineBudget 10
Include "@DOCROOT@/escaped.conf"
Include "@DOCROOT@/bare.conf"
<Directory "@DOCROOT@">
    Include "@DOCROOT@/deny.conf"
</Directory>
END
    my $json = load_until($srv, sub { !grep { !$_->{told} } lines($_[0], args => qr/ bare$/) }, '/small.txt');
    my @escaped = lines($json, file => qr/escaped\.conf/);
    my @bare    = lines($json, file => qr/bare\.conf/);
    my @deny    = lines($json, file => qr/deny\.conf/, directive => qr/Deny/);
    is scalar @$_, 500, 'each list has a row for each line' for \@escaped, \@bare, \@deny;
    cmp_ok sum_ns(@bare), '>=', 2 * sum_ns(@escaped), 'bare dots are at least twice as dear as escaped dots';
    my $usual = median(map { $_->{sum_ns} } @bare);
    my $even = grep { $_->{sum_ns} > $usual / 2 && $_->{sum_ns} < $usual * 2 } @bare;
    cmp_ok $even, '>=', 450, 'nearly every line of the bare list is within a factor of two of the usual one';
    my $deny_us = sum_ns(@deny) / $json->{requests}{count} / 1000;
    cmp_ok $deny_us, '>', 0.3, '500 Deny lines are not hidden by the others';
    cmp_ok $deny_us, '<', 60, 'and come out at some microseconds';
    cmp_ok +(grep { abs($_->{evaluated} - $json->{requests}{count}) <= 2 } @bare, @deny), '==', 1000,
        'each line is evaluated by each request';
    adds_up($json, 'lists');
    my $share = $json->{profiler}{cost_share};
    cmp_ok $json->{profiler}{replay_ns}, '>', 0, 'replaying has a cost';
    cmp_ok $share * $json->{total}{sum_ns}, '>=', $json->{profiler}{replay_ns},
        'which is part of what the profiler says it costs';
    my $folded = RpTest::Report::status($srv, 'format=folded');
    is scalar(() = $folded =~ /^setenvif;mod_setenvif;post_read_request;\S+bare\.conf:\d+ SetEnvIf .* \d+$/mg), 500,
        'folded stacks go down to the line';
    is sum0($folded =~ / (\d+)$/mg), $json->{total}{sum_ns}, 'and still add up to the total';
    like $srv->text, qr/^Line: .*bare\.conf:\d+ SetEnvIf/m, 'the text names the costliest lines';
    $srv->done;
}

# One pattern that backtracks for ever, among thirty that do not.
{
    my $robots = list(qw(lines --of=agents --shape=escaped --count=30 --env=robot));
    my $srv    = RpTest->start(modules => \@modules, status_vhost => 1, conf => <<'END' . $robots);
ReqProfLineBudget 10
SetEnvIf X-Word "^(a+)+$" backtracks
END
    my $json = load_until($srv, sub { (lines($_[0], args => qr/backtracks/))[0]{told} }, '/small.txt',
        'X-Word' => 'a' x 18 . '!');
    my ($bad) = lines($json, args => qr/backtracks/);
    my $setenvif = $srv->phase($json, 'setenvif')->{self}{sum_ns};
    cmp_ok $bad->{sum_ns}, '>=', 0.9 * $setenvif, 'a pattern that backtracks owns at least nine tenths of setenvif';
    is $bad->{matched}, 0, 'and never matches';
    adds_up($json, 'backtracking');
    $srv->done;
}

# What matches and what decides; merged lines; hook of directory lines.
{
    my $srv = RpTest->start(modules => \@modules, status_vhost => 1, allow_log => qr/AH01797/, conf => <<'END');
ReqProfLineBudget 10
SetEnvIf User-Agent "Robot" robot
SetEnvIf User-Agent "R.bot" twice
SetEnvIf User-Agent "R.bot" merged
SetEnvIf User-Agent "Nobody" nobody
<Directory "@DOCROOT@">
    SetEnvIf Request_URI "small" in_directory
    Order Allow,Deny
    Allow from all
    Deny from 192.0.2.1
    Deny from env=robot
    Deny from 192.0.2.2
</Directory>
END
    for my $round (1 .. 10) {
        $srv->ab(requests => 900, concurrency => 2, path => '/small.txt', keep_alive => 1);
        $srv->ab(requests => 300, concurrency => 2, path => '/small.txt', keep_alive => 1,
            headers => { 'User-Agent' => 'Robot' });
    }
    my $json  = $srv->json;
    my $count = $json->{requests}{count};
    my %row   = map { ("$_->{directive} $_->{args}" => $_) } @{ $json->{lines} };
    my $near  = sub { my ($got, $wanted) = @_; return abs($got - $wanted) <= 0.5 * $wanted };
    ok $near->($row{'SetEnvIf User-Agent "Robot" robot'}{matched}, $count / 4),
        'a line that matches a quarter is seen to match about as many';
    is $row{'SetEnvIf User-Agent "Nobody" nobody'}{matched}, 0, 'a line that matches nothing matched nothing';
    ok $near->($row{'Deny from env=robot'}{decided}, $count / 4),
        'the Deny line that refuses the robot decides about a quarter';
    ok $near->($row{'Allow from all'}{decided}, 3 * $count / 4), 'the Allow line decides the rest';
    is $row{'Deny from 192.0.2.1'}{decided}, 0, 'a Deny line for somebody else decides nothing';
    ok $near->($row{'Deny from 192.0.2.2'}{evaluated}, 3 * $count / 4),
        'a line after the one that decides is not evaluated then';
    is $row{'SetEnvIf User-Agent "R.bot" twice'}{sum_ns}, $row{'SetEnvIf User-Agent "R.bot" merged'}{sum_ns},
        'two lines that mod_setenvif merges share the cost of one entry';
    my ($directory) = grep { $_->{hook} eq 'header_parser' } @{ $json->{lines_not_attributed} };
    is $row{'SetEnvIf Request_URI "small" in_directory'}{sum_ns}, $directory->{attributed_ns},
        'a line in a directory is in header_parser';
    adds_up($json, 'matching');
    $srv->done;
}

# No trace: the same requests with and without replay give the same answers, variables and log lines.
for my $mpm (qw(prefork event)) {
    my %seen;
    for my $budget (0, 10) {
        my $srv = RpTest->start(mpm => $mpm, modules => \@modules, status_vhost => 1, log_level => 'trace8',
            allow_log => qr/AH01797/, conf => <<"END");
ReqProfLineBudget $budget
SetEnvIf User-Agent ".*" seen=\$0
SetEnvIf User-Agent "(Robot)" robot=\$1
Header set X-Seen "%{seen}e %{robot}e %{reqprof-replay-0}e"
<Directory "\@DOCROOT\@">
    SetEnvIf Request_URI "small" !seen in_directory
    Order Allow,Deny
    Allow from all
    Deny from env=robot
</Directory>
LogFormat "%v %>s %{robot}e %{in_directory}e %{reqprof-replay-0}e %{reqprof-replay-1}e" variables
CustomLog "\@DIR\@/variables.log" variables
END
        my @answers;
        for my $i (1 .. 60) {
            my $res = $srv->get('/small.txt', keep_alive => 1,
                headers => { 'User-Agent' => $i % 3 ? "Reader $i" : 'Robot' });
            push @answers, "$res->{status} " . ($res->{headers}{'x-seen'} // '');
        }
        my ($json) = $srv->settle;
        open my $log, '<', $srv->dir . '/variables.log' or die;
        my @logged = grep { !/status\.test/ } <$log>;
        # The report's own requests set "seen" and nothing else; how many there are varies.
        my $own = sub { scalar grep { /\[(setenvif|access_compat):/ && !/Setting seen/ } $srv->error_log };
        $seen{$budget} = { answers => join("\n", @answers), variables => join('', @logged), logged => $own->(),
            replayed => $json->{profiler}{replay_requests} };
        $srv->done("$mpm, budget $budget: the server stops, and logged nothing unannounced");
    }
    is $seen{0}{replayed}, 0, "$mpm: with a budget of 0 nothing is replayed";
    cmp_ok $seen{10}{replayed}, '>', 0, "$mpm: with a budget requests are replayed";
    is $seen{10}{$_}, $seen{0}{$_}, "$mpm: replaying changes nothing in what is $_" for qw(answers variables);
    is $seen{10}{logged}, $seen{0}{logged}, "$mpm: and the modules log as many lines with LogLevel trace8";
    like $seen{10}{variables}, qr/^\S+ 200 - 1 - -$/m, "$mpm: the requests' own variables are set, no other";
}

done_testing;
