// Work that would hold the page up.
export {};
