# The formula for Homebrew, which builds from source. A release has it with its tag and revision filled in.
class Ctxtool < Formula
  desc "Stores the conversations of language-model agents as plain files"
  homepage "https://github.com/ctxdir/ctxdir"
  url "https://github.com/ctxdir/ctxdir.git", tag: "@TAG@", revision: "@REVISION@"
  license "Apache-2.0"

  depends_on "go" => :build

  def install
    ENV["CGO_ENABLED"] = "0"
    system "go", "build", *std_go_args(ldflags: "-s -w"), "./cmd/ctxtool"
    system bin/"ctxtool", "man", buildpath/"man"
    man1.install Dir["man/*.1"]
    generate_completions_from_executable(bin/"ctxtool", "completion")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ctxtool version")
    system bin/"ctxtool", "--store", testpath/"store", "new", "--title", "A walk"
    assert_match "A walk", shell_output("#{bin}/ctxtool --store #{testpath}/store ls")
  end
end
