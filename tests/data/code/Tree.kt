package forest

@Serializable
data class Leaf(val size: Int)

@Suppress("UNUSED")
sealed interface Tree {
    // 树高
    val height: Int
}

fun plant(leaves: List<Leaf>): Tree? {
    if (leaves.isEmpty()) {
        return null
    }
    return grow(leaves)
}

object Forest {
    val trees = mutableListOf<Tree>()
}
