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
    (
        '{"Rewrite": "Redis, Kafka?", "thoughts": ["Redis first"], "Sub-Questions": ["Redis?", "Kafka?"]}',
        "Redis, Kafka?",
        ("Redis?", "Kafka?"),
    ),
    (
        '{"result": {"rewrite": "Redis, Kafka?", "questions": ["Redis?", "Kafka?"]}}',
        "Redis, Kafka?",
        ("Redis?", "Kafka?"),
    ),
    (
        '{"rewrite": "Redis, Kafka?", "questions": ["What is Redis?", "Cheap hotels in Paris", "Kafka?"]}',
        "Redis, Kafka?",
        ("What is Redis?", "Kafka?"),
    ),
    (
        '{"rewrite": "Redis? And Kafka?", "questions": ["Best pizza in Rome", "Cheap hotels in Paris"]}',
        "Redis? And Kafka?",
        ("Redis?", "And Kafka?"),
    ),
    (
        '{"rewrite": "What are Redis and Kafka?", "questions": ["What is Redis?", "Best pizza in Rome"]}',
        "What are Redis and Kafka?",
        ("What are Redis and Kafka?",),
    ),
    (
        '{"rewrite": "Redis and Kafka?", "questions": "1. What is Redis?\\n2. What is Kafka?"}',
        "Redis and Kafka?",
        ("What is Redis?", "What is Kafka?"),
    ),
    (
        '{"rewrite": "Redis and Kafka?", "questions": {"1": {"question": "Redis?"}, "2": {"question": "Kafka?"}}}',
        "Redis and Kafka?",
        ("Redis?", "Kafka?"),
    ),
]

REJECTED = [
    (
        "How do I reset my password and email?",
        '{"rewrite":"Best pizza in Rome","questions":["Best pizza in Rome","Cheap hotels in Paris"]}',
        ("How do I reset my password and email?",),
    ),
    (
        "How do I reset my password? And my email?",
        '{"rewrite":"Best pizza in Rome","questions":["Best pizza in Rome","Cheap hotels in Paris"]}',
        ("How do I reset my password?", "And my email?"),
    ),
    (
        "年假有几天？怎么申请？",
        '{"rewrite":"北京今日气温","questions":["北京今日气温","上海美食推荐"]}',
        ("年假有几天？", "怎么申请？"),
    ),
    (
        "年假有几天？怎么申请？",
        '{"rewrite":"北京今日气温","questions":["年假有几天？","年假怎么申请？","上海美食推荐"]}',
        ("年假有几天？", "年假怎么申请？"),
    ),
]

IN_A_TALK = [
    (
        "它支持哪些类型？怎么备份？",
        '{"rewrite":"Redis 支持哪些类型？怎么备份？","questions":'
        '["Redis 是一个基于内存的键值数据库，常用作缓存","上海美食推荐"]}',
        ("Redis 支持哪些类型？", "怎么备份？"),
    ),
    (
        "它支持哪些类型？怎么备份？",
        '{"rewrite":"Redis 支持哪些类型？怎么备份？","questions":'
        '["Redis 支持哪些类型？","如何备份 Redis？"]}',
        ("Redis 支持哪些类型？", "如何备份 Redis？"),
    ),
    (
        "它支持哪些类型？怎么备份？",
        '{"rewrite":"Redis 支持哪些类型？怎么备份？","questions":'
        '["Redis 是什么？","Redis 支持哪些类型？","如何备份 Redis？"]}',
        ("Redis 支持哪些类型？", "如何备份 Redis？"),
    ),
]
