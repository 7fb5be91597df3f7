package books;

import java.util.List;

/** Entries of one year. 一年的账目。 */
@Deprecated
@SuppressWarnings({
    "unchecked",
    "rawtypes",
})
public final class Ledger {
    private final List<Entry> entries;

    public Ledger(List<Entry> entries) {
        this.entries = entries;
    }

    @Override
    public String toString() {
        return "Ledger of " + entries.size();
    }
}

interface Entry {
    long amount();
}

@interface Audited {
    String by();
}
