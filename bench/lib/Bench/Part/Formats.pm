package Bench::Part::Formats;

# How long an answer takes with 1, 16 and 256 children and 150 spans, beyond a small file.

use strict;
use warnings;
use Time::HiRes qw(time);
use Bench::Part;
use Bench::Scale;
use Bench::Stats;
use RpTest::Load;

my @formats = qw(html json text folded prometheus);

sub rows {
    my (%arg) = @_;
    return map { of_children($_, %arg) } $arg{quick} ? (1, 256) : (1, 16, 256);
}

sub of_children {
    my ($count, %arg) = @_;
    my $mpm_conf = "StartServers $count\nMinSpareServers 1\nMaxSpareServers 256\nMaxRequestWorkers 256\n";
    my $server = Bench::Server->start(variant => 'reqprof spans', mpm => 'prefork', mpm_conf => $mpm_conf,
        modules => [ Bench::Scale::link_modules(14) ]);
    RpTest::Process::wait_for(sub { my @pids = $server->children; @pids >= $count }, 20);
    # A connection keeps its child, so that all of them serve.
    RpTest::Load::ab($server, path => '/small.txt', concurrency => $count, requests => 40 * $count, keep_alive => 1);
    my $file_ms = answer_ms($server, '/small.txt');
    my @rows = (map({ row($server, $count, $_, $file_ms) } @formats),
        Bench::Part::fact(who($count) . ": mod_status's page, ms",
            sprintf '%+.2f', answer_ms($server, '/server-status') - $file_ms));
    $server->stop;
    return @rows;
}

sub who { return $_[0] == 1 ? '1 child' : "$_[0] children" }

sub row {
    my ($server, $count, $format, $file_ms) = @_;
    my $what = who($count) . ": $format, ms";
    my $ms = eval { answer_ms($server, "/reqprof-status?format=$format") - $file_ms };
    return Bench::Part::skipped($what, 'the module has no such format') if !defined $ms;
    return Bench::Part::at_most($what, $ms, 20, sprintf '%+.2f', $ms);
}

# A connection for each answer, as they may come chunked; the connecting is in the small file's time, too.
sub answer_ms {
    my ($server, $path) = @_;
    return Bench::Stats::median(map { one_answer_ms($server, $path) } 1 .. 9);
}

sub one_answer_ms {
    my ($server, $path) = @_;
    my $began  = time;
    my $socket = $server->connects // die "no connection: $!\n";
    print {$socket} "GET $path HTTP/1.0\r\nHost: localhost\r\n\r\n";
    my $answer = do { local $/; <$socket> } // '';
    die "unexpected answer: " . substr($answer, 0, 200) . "\n" if $answer !~ m{\AHTTP/1\.1 200 };
    return 1000 * (time - $began);
}

1;
