"""A few passages with questions in several languages, for where the real collections are not."""

from __future__ import annotations

from tests.benchmarks.collections import Collection

__all__ = ["sample_collections"]

_SAMPLES = {
    "en": {
        "The harbour was built in 1862 to ship coal to the north.": "When was the harbour built?",
        "Bees tell each other by a dance where flowers are.": "How do bees tell where flowers are?",
        "The old bridge was closed after the flood in spring.": "Why was the bridge closed?",
        "Copper turns green in the rain over many years.": "What makes copper turn green?",
        "The library lends out instruments as well as books.": "Can instruments be borrowed?",
    },
    "zh": {
        "这座港口建于1862年，用来向北方运煤。": "港口是哪一年建的？",
        "蜜蜂用舞蹈告诉同伴花在哪里。": "蜜蜂怎样告诉同伴花的位置？",
        "春天发大水以后，老桥就关闭了。": "老桥为什么关闭？",
        "铜在雨水中多年以后会变绿。": "什么让铜变绿？",
        "图书馆除了书，还出借乐器。": "图书馆可以借乐器吗？",
    },
    "de": {
        "Der Hafen wurde 1862 gebaut, um Kohle zu verschiffen.": "Wann wurde der Hafen gebaut?",
        "Bienen zeigen einander durch einen Tanz die Blumen.": "Wie zeigen Bienen die Blumen?",
        "Die alte Brücke wurde nach dem Hochwasser gesperrt.": "Warum ist die Brücke gesperrt?",
        "Kupfer wird im Regen mit den Jahren grün.": "Wodurch wird Kupfer grün?",
        "Die Bücherei verleiht auch Instrumente.": "Verleiht die Bücherei Instrumente?",
    },
    "ru": {
        "Порт построили в 1862 году, чтобы возить уголь.": "Когда построили порт?",
        "Пчёлы танцем показывают друг другу цветы.": "Как пчёлы показывают цветы?",
        "Старый мост закрыли весной после наводнения.": "Почему закрыли старый мост?",
        "Медь под дождём с годами зеленеет.": "Почему медь зеленеет?",
        "Библиотека выдаёт не только книги, но и инструменты.": "Выдаёт ли библиотека инструменты?",
    },
    "th": {
        "ท่าเรือสร้างขึ้นเพื่อขนถ่านหินไปทางเหนือ": "ท่าเรือสร้างขึ้นเพื่ออะไร",
        "ผึ้งเต้นรำเพื่อบอกว่าดอกไม้อยู่ที่ไหน": "ผึ้งบอกว่าดอกไม้อยู่ที่ไหนอย่างไร",
        "สะพานเก่าปิดหลังจากน้ำท่วม": "ทำไมสะพานเก่าปิด",
        "ทองแดงกลายเป็นสีเขียวเพราะฝน": "อะไรทำให้ทองแดงเป็นสีเขียว",
        "ห้องสมุดให้ยืมเครื่องดนตรีด้วย": "ยืมเครื่องดนตรีจากห้องสมุดได้ไหม",
    },
}


def sample_collections() -> list[Collection]:
    """Return one small collection per language."""
    collections = []
    for language, passages in _SAMPLES.items():
        ids = [str(number) for number in range(len(passages))]
        queries = dict(zip(ids, passages.values(), strict=True))
        grades = {id_: {id_: 1} for id_ in ids}
        collections.append(Collection(f"sample-{language}", ids, list(passages), queries, grades))
    return collections
