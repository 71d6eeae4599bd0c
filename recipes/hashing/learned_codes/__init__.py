"""Binary codes learned end to end, by TALR and by the methods that its paper compares with."""
