package planexecute

import "github.com/cloudwego/eino/internal/swap"

type swapMap = swap.Map

var newSwap = swap.New
