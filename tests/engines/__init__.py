"""The engines that the tests run against, and a client raw enough to check what they answer."""
