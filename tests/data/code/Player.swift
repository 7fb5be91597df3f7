import Foundation

/// 播放器
@available(iOS 15, *)
public final class Player {
    @Published var volume: Double = 0.5

    func play(_ track: Track) async throws {
        guard track.isReady else { return }

        try await track.start()
    }
}

extension Player {
    var isSilent: Bool { volume == 0 }
}

func makePlayer() -> Player {
    Player()
}
