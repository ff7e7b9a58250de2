package dynamostore

// ItemSize is itemSize, for the meter of the tests.
var ItemSize = itemSize
