"""Words that carry no topic: articles, pronouns, prepositions, conjunctions, auxiliaries.

The lists are short on purpose: a word that is missing costs little, since BM25 weighs what is
in every document near zero; a word too many can never be searched for. Contractions stand as
the analyzer cuts them, at the apostrophe.
"""

from __future__ import annotations

from typing import Final

__all__ = ["STOP_WORDS"]

STOP_WORDS: Final = {
    "arabic": """
        في من على إلى عن مع هذا هذه ذلك تلك التي الذي الذين هو هي هم هن نحن أنا أنت كان كانت يكون
        قد لقد ما لا لم لن إن أن أو ثم بل كل بعض غير بين بعد قبل عند حتى إذا كما أي و
    """,
    "chinese": """
        的 了 和 与 与 及 或 在 是 也 都 而 就 这 那 之 于 但 被 把 让 从
        向 对 吗 呢 吧 啊 着 得 地 這 與 於 讓 從 對 嗎 著 我 你 他 她 它
        们 們 个 個 些 我们 你们 他们 我們 你們 他們 这个 那个 这些 那些 這個 那個 這些
    """,
    "danish": """
        og i at det en den til er som på de med han af for ikke der var mig sig men et har om vi
        min havde ham hun nu over da fra du ud sin dem os op man hans hvor eller hvad skal selv
        her alle vil blev kunne ind når være kom noget ville jo deres efter ned skulle denne end
        dette mit
    """,
    "dutch": """
        de en van ik te dat die in een hij het niet zijn is was op aan met als voor had er maar om
        hem dan zou of wat mijn men dit zo door over ze zich bij ook tot je mij uit der daar haar
        naar heb hoe heeft hebben deze u want nog zal me zij nu ge geen omdat iets worden toch al
        waren veel
    """,
    "english": """
        a an the this that these those i me my we us our ours you your yours he him his she her
        hers it its they them their theirs who whom whose which what when where why how and or but
        nor if then than so as of at by for with about against between into through during before
        after above below to from up down in out on off over under again once here there all any
        both each few more most other some such no not only own same too very can will just should
        now am is are was were be been being have has had having do does did doing would could may
        might must shall because while until s t d ll re ve m don doesn didn isn aren wasn weren
        won
    """,
    "finnish": """
        ja on ei se että hän oli en mutta kun niin ovat ole joka mitä myös jos tai kuin sen hänen
        nyt tämä me te he minä sinä olla olen olet olemme olivat ollut mikä mukaan vain vielä jo
        siitä tässä sitä jotka joita ettei eivät kanssa ennen ilman
    """,
    "french": """
        le la les l un une des d du de à au aux et ou où mais donc or ni car que qu qui quoi dont
        ce cet cette ces c se s son sa ses mon ma mes m ton ta tes t notre nos votre vos leur
        leurs je j tu il elle on nous vous ils elles lui eux y en ne n pas plus dans par pour sur
        sous avec sans est sont était étaient être été ai as a avons avez ont avait avoir si comme
        même aussi très
    """,
    "german": """
        der die das den dem des ein eine einen einem einer eines und oder aber sondern denn weil
        dass wenn als wie ob ich du er sie es wir ihr mich dich sich uns euch ihm ihn ihnen mein
        dein sein seine seinen seinem seiner ihre ihren ihrem ihrer unser euer dieser diese dieses
        diesen diesem jener jene was wer wo wann warum welche welcher welches in im an am auf aus
        bei beim mit nach von vom vor zu zum zur über unter um für gegen durch ohne bis ist sind
        war waren bin bist wird werden wurde wurden hat haben hatte hatten kann können nicht kein
        keine auch nur noch so sehr
    """,
    "greek": """
        ο η το οι τα του της των τον την τους τις ένας μία μια ένα και ή αλλά να θα δεν μη μην που
        πως ότι αν από σε στο στη στον στην στα στους στις με για προς κατά μετά πριν είναι ήταν
        έχει έχουν αυτό αυτή αυτός αυτά αυτές αυτοί εγώ εσύ εμείς εσείς μου σου μας σας ως όπως
    """,
    "hindi": """
        का के की को में से पर और या है हैं था थे थी यह वह ये वे इस उस इन उन एक ने कि जो तो भी ही
        नहीं कर हो होता होती होते गया गई गए लिए साथ अपने अपनी अपना हम आप मैं तक जब तब क्या
    """,
    "italian": """
        il lo la i gli le l un uno una di a da in con su per tra fra del dello della dei degli
        delle al allo alla ai agli alle dal dalla dai dalle nel nella nei nelle sul sulla sui
        sulle e ed o ma se che chi cui non più come dove quando perché io tu egli lui lei noi voi
        essi loro mi ti si ci vi mio tuo suo nostro vostro questo questa questi queste quello
        quella è sono era erano essere stato ha hanno aveva avere anche
    """,
    "norwegian": """
        og i jeg det at en et den til er som på de med han av ikke der så var meg seg men ett har
        om vi min mitt ha hadde hun nå over da ved fra du ut sin dem oss opp man kan hans hvor
        eller hva skal selv her alle vil bli ble blitt kunne inn når være kom noen noe ville dere
        deres kun etter
    """,
    "portuguese": """
        o a os as um uma uns umas de do da dos das em no na nos nas por pelo pela pelos pelas para
        com sem sob sobre entre até e ou mas se que quem qual quais como quando onde porque não
        mais muito eu tu ele ela nós vós eles elas me te lhe lhes meu minha teu tua seu sua seus
        suas este esta isto esse essa isso aquele aquela aquilo é são era eram ser foi foram está
        estão tem têm há ao aos à às também
    """,
    "russian": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по ее её мне
        было вот от меня о из ему ей им них нас их для мы этот эта это эти тот та те был была были
        быть есть или если когда где кто чем при до под над без также уже только
    """,
    "spanish": """
        el la los las lo un una unos unas de del a al en con por para sin sobre entre hasta desde
        y e o u pero si que quien cual cuales cuando donde como porque no más muy yo tú él ella
        nosotros ellos ellas me te se le les nos mi mis tu tus su sus este esta esto estos estas
        ese esa eso aquel aquella es son era eran ser fue fueron está están ha han había hay
        también ya
    """,
    "swedish": """
        och i att det en ett den till är som på de med han av för inte där var mig sig men har om
        vi min hade honom hon nu över då från du ut sin dem oss upp man kan hans var eller vad ska
        själv här alla vill blev kunde in när vara kom något skulle efter denna detta dessa mycket
        sedan
    """,
    "turkish": """
        ve ile bir bu şu o da de ki mi mı mu mü için gibi kadar daha çok en ama fakat veya ya ne
        nasıl neden niçin hangi ben sen biz siz onlar onun bunun şunun olan olarak oldu olduğu ise
        değil her hiç sonra önce göre
    """,
}
"""Language by its English name to its words, separated by white space."""
