<?php

namespace Site;

/**
 * One page. 一个页面。
 */
#[Route('/page', methods: ['GET'])]
#[Cached]
final class Page
{
    public function __construct(private string $title)
    {
    }

    public function title(): string
    {
        return htmlspecialchars($this->title);
    }
}

function home(): Page
{
    return new Page('Home');
}
