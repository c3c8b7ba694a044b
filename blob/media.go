package blob

import "strings"

// mediaMagic lists how compressed formats begin. A dot stands for any byte.
var mediaMagic = []string{
	"\x89PNG\r\n\x1a\n",
	"\xff\xd8\xff",         // JPEG
	"GIF8",                 //
	"RIFF....WEBP",         //
	"PK\x03\x04",           // ZIP, and with it docx, xlsx, jar, epub
	"\x1f\x8b",             // gzip
	"\x28\xb5\x2f\xfd",     // zstd
	"BZh",                  // bzip2
	"\xfd7zXZ\x00",         // xz
	"7z\xbc\xaf\x27\x1c",   //
	"Rar!\x1a\x07",         //
	"ID3",                  // MP3 with a tag
	"\xff\xfb",             // MP3
	"\xff\xf3",             //
	"\xff\xf2",             //
	"\xff\xf1",             // AAC
	"\xff\xf9",             //
	"OggS",                 //
	"fLaC",                 //
	"....ftyp",             // MP4, M4A, MOV, HEIC, AVIF
	"\x1a\x45\xdf\xa3",     // WebM, Matroska
	"%PDF-",                // its streams are deflated
	"wOF2",                 //
	"\x00\x00\x00\x0cjP  ", // JPEG 2000
	"\xff\x0a",             // JPEG XL
}

// isMedia reports whether a payload looks compressed. It is a guess: the caller also checks whether the first block
// shrinks.
func isMedia(payload []byte) bool {
	for _, magic := range mediaMagic {
		if begins(payload, magic) {
			return true
		}
	}
	return false
}

func begins(payload []byte, magic string) bool {
	if len(payload) < len(magic) {
		return false
	}
	if !strings.Contains(magic, "....") {
		return string(payload[:len(magic)]) == magic
	}
	for i := range len(magic) {
		if magic[i] != '.' && payload[i] != magic[i] {
			return false
		}
	}
	return true
}
