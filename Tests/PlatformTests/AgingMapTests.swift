import Platform
import Testing

/// The map that forgets what is old.
struct AgingMapTests {
  @Test func `what was written longest ago is forgotten first`() {
    var map = AgingMap<Int, Int>(half: 2)
    for number in 1...4 { map[number] = number }
    // The younger half has just become the older one.
    #expect((1...4).map { map[$0] } == [nil, nil, 3, 4])
    map[5] = 5
    #expect((3...5).map { map[$0] } == [3, 4, 5])
  }

  @Test func `an entry that is written again is young again, and one that is removed is gone`() {
    var map = AgingMap<Int, Int>(half: 2)
    for number in 1...2 { map[number] = number }
    map[1] = 10
    map[3] = 3
    #expect((1...3).map { map[$0] } == [10, nil, 3] && map.count == 2)
    map[1] = nil
    #expect(map[1] == nil && map.count == 1)
  }

  @Test func `what must be kept is kept, however old it is`() {
    var map = AgingMap<Int, Int>(half: 2) { $0 < 0 }
    map[0] = -1
    for number in 1...100 { map[number] = number }
    #expect(map[0] == -1 && map[1] == nil)
    map[0] = 7
    for number in 101...200 { map[number] = number }
    #expect(map[0] == nil && map.count <= 4)
  }
}
