"""What we do next: intake, the run loop, one folder a phase, actions and providers."""
