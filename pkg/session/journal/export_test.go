package journal

// EncodeWithin is Encode with a bound that a test can reach.
var EncodeWithin = encode
