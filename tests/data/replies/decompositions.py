"""Replies to a request for rewrite and sub-questions: reply, rewrite, sub-questions."""

DECOMPOSED = [
    (
        '{"rewrite": "What are Redis and Kafka?", "questions": ["What is Redis?", "What is Kafka?"]}',
        "What are Redis and Kafka?",
        ("What is Redis?", "What is Kafka?"),
    ),
    (
        'Sure!\n```json\n{"rewrite": "What is Redis?", "questions": ["What is Redis?"]}\n```',
        "What is Redis?",
        ("What is Redis?",),
    ),
    ('{"rewrite": "What is Redis?", "questions": []}', "What is Redis?", ("What is Redis?",)),
    ('{"rewrite": "What is Redis?"}', "What is Redis?", ("What is Redis?",)),
    (
        '{"rewrite": "What is Redis?", "questions": ["What is Redis?", "what is  redis", "1. Price?"]}',
        "What is Redis?",
        ("What is Redis?", "Price?"),
    ),
    (
        '<think>{"rewrite": "no"}</think>{"rewrite": "Redis, Kafka?", "sub_questions": '
        '[{"question": "Redis?"}, {"question": "Kafka?"}],}',
        "Redis, Kafka?",
        ("Redis?", "Kafka?"),
    ),
    (
        '{"rewrite": "Redis?", "questions": ["a?", "b?", "c?", "d?", "e?", "f?"]}',
        "Redis?",
        ("a?", "b?", "c?", "d?"),
    ),
    (
        '{"rewrite": "Redis?", "questions": ["I\'m sorry, I cannot", "Redis 是什么", 7, null]}',
        "Redis?",
        ("Redis?",),
    ),
]
