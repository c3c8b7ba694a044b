package term

// Styles, as parameters of the escape sequence "select graphic rendition".
const (
	Bold      = "1"
	Dim       = "2"
	Red       = "31"
	Green     = "32"
	Yellow    = "33"
	BoldRed   = "1;31"
	BoldGreen = "1;32"
	BoldBlue  = "1;34"
	Purple    = "35"
)

// styles are those that a [Sanitiser] lets pass, and their end.
var styles = []string{"0", Bold, Dim, Red, Green, Yellow, BoldRed, BoldGreen, BoldBlue, Purple}

// Painter colours texts, or leaves them as they are.
type Painter bool

// Colours returns the painter for w. It paints only on a terminal, unless the user disabled colours.
func Colours(w any, env Env) Painter {
	return Painter(Is(w) && env("NO_COLOR") == "" && !env.dumb())
}

// Paint gives a text a style; "" is none.
func (p Painter) Paint(style, text string) string {
	if !p || style == "" || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}
