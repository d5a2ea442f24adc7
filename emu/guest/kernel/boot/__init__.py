"""Loading the kernel guest: its images, its initial file system."""
