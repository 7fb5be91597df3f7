#!/usr/bin/perl
use strict;
use warnings;

# 数词
sub count_words {
    my ($text) = @_;
    my @words = split ' ', $text;
    return scalar @words;
}

print count_words("a b c"), "\n";
