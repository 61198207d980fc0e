/// SHA-256 over the payload's parts, and the recipe by which it was made.
package struct Fingerprint: Hashable, Sendable {
  package var recipe: Recipe
  package var digest: Digest256

  package init(recipe: Recipe, digest: Digest256) {
    self.recipe = recipe
    self.digest = digest
  }
}
